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
// An object that is not ours is met by an apply without force. Where that
// conflicts, or where Flux, Argo CD or Helm turn out to manage the object, it is
// left as it was and its owner is named.
//
// Only objects whose live managedFields hold our entry are deleted, and only the
// incarnation that was seen (its UID is a precondition); never when something of
// the add-on failed or waits, never what another add-on wants.
//
// A pass waits for nothing: what is not ready is in its report, and a watch
// calls for the next pass. So one stuck object delays nobody.
//
// # Decisions
//
// A missing object is applied again by one forced apply, without a read first: a
// server-side apply creates what is gone and puts the label back on what only
// lost its label. What is about to be deleted is read first when it is out of
// sight.
//
// Nothing is pruned anywhere while some selected add-on can't be rendered: an
// object that has left one add-on may be on its way into that one, and a delete
// can't be taken back. Applies go on.
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
