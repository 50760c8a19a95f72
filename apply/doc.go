// Package apply makes a cluster hold what is wanted, and nothing more of what it
// put there itself. It is a library: it knows no Git, no status objects and no
// agent.
//
//	             wanted add-ons     inventory   live objects   kinds
//	                    \               |            |          /
//	observe              \              |            |         /
//	decide                 NewPlan: steps by stage, waiting, removal, hold     pure
//	act          write down intent -> apply -> get rid of -> write down result
//	report                 Report: changes, failures, health, what is held
//
// # Guarantees
//
// One request per changed object and none for an unchanged one. Whether an
// object is unchanged is told without a diff: our own entry in managedFields
// changes whenever another writer changes a field that we set, so its hash, from
// the answer to our last apply, is compared with what the watch says now.
//
// Nothing is applied before the inventory says that it will be, and nothing
// leaves the inventory before it is gone, let go of, or in another add-on's.
//
// An object that no inventory holds as applied is met by an apply without force.
// Where that conflicts, or where Flux, Argo CD or Helm turn out to manage the
// object, it is left as it was and its owner is named.
//
// Only objects whose live managedFields hold our entry are deleted, and only the
// incarnation that was seen (its UID is a precondition); never when something of
// the add-on failed or waits, never what another add-on wants, never because an
// add-on wants nothing at all.
//
// A pass waits for nothing: what is not ready is in its report, and a watch
// calls for the next pass. So one stuck object delays nobody.
//
// # Decisions
//
// A missing object is applied again by one forced apply, without a read first: a
// server-side apply creates what is gone and puts the label back on what only
// lost its label. What is about to be deleted is read first when it is out of
// sight; what is held is looked for, since what is gone needs no consent.
//
// Our fields on an object are no proof that it is ours: they may be what a pass
// left that died before it gave them back to another tool. The inventory is the
// proof; without it the object is met as any other, and a conflict is decided by
// who else manages it.
//
// Nothing is pruned anywhere while some selected add-on can't be rendered, or
// has an object that does not pass the edge: an object that has left one add-on
// may be on its way into that one, and a delete can't be taken back. Applies go
// on.
//
// Webhooks and policy bindings that are new or changed wait for all else of their
// add-on. One that somebody deleted or changed is repaired whatever else fails:
// else any broken object would be a way to switch a policy off.
//
// A 404 for a path that is not served says nothing of an object: the kinds are
// asked for again.
//
// The ConfigMaps of an inventory that grows are written last one first, those of
// one that shrinks first one first: so no crash between two writes leaves an
// identity in none of them.
//
// Objects with unknown or duplicate fields are refused (fieldValidation=Strict):
// the API server would drop the field without a word.
//
// A Secret's stringData is sent as data, since the server does not own up to
// stringData, and a key that leaves the file would stay.
//
// # Refuses
//
// A namespaced object without a namespace; one object in two add-ons; kinds that
// are not served or can't be watched. Each is a Failure of that object, and the
// others go on.
package apply
