// Package peer is what this cluster knows of the other members, and how far it
// believes it: values in, values out, with the time handed over. No client, no
// goroutine, no log.
//
//	signed cluster list ── SetList ──┐
//	heads ── Wants ─> get ── Take ───┤                ┌─ Of(service) ─> shares
//	Parts ─────────> get ── TakePart ┼─> Peers ───────┤
//	own head ────────────── Contact ─┤                ├─ View(name) ─> status
//	namespaces here ── Follow/Forget ┘                └─ Memory ─> kept over a restart
//
// # How it is used
//
// A round: list the heads of the carrier (or take the one that a watch tells of);
// for each that Wants, get the bytes and Take them; for each member of Pending get
// the Parts and TakePart them; then Contact with what the carrier lists as our own
// record. Where the carrier does not answer: Contact with nothing. Every call
// gives an Outcome: the services whose shares differ now, and the transitions. Write
// Memory when Revision has changed. Before the first own record, and when the own
// head is not what was put: TakeOwn. After each Put: Published.
//
// A service here is made from Of; before what is here of a cluster is removed
// because it has no share, ask Settled.
//
// # What it guarantees
//
//   - A record is taken only if it is signed by a key of that entry, is for this
//     ClusterSet and that name, and is newer than all before. What is refused
//     changes nothing; reason and message say why.
//   - Silence changes nothing. Not listing a member, giving nothing for a digest
//     and hiding a part are not withdrawals: only a tombstone and the signed list
//     are.
//   - Not connected (our own latest record can't be read back), nothing changes: no
//     lease ends, and all begin anew at reconnection.
//   - An endpoint outside the entry's ranges, inside ours, or of special meaning is
//     never in a share.
//   - The cost of one changed record, part or service does not depend on the number
//     of members.
//
// # Decisions
//
//   - Judged by its claim to be new is the sequence number over all keys of the
//     entry: the last record before a rotation can't come back. The marks of keys
//     that left the list stay.
//   - Bytes are compared by the signed payload, so that whoever runs the carrier
//     can't make a member look as if it had signed twice (Equivocation).
//   - A lease ends only in a round that has read our own record back, after the new
//     records of that round were taken. So a carrier that broke between two rounds
//     makes nobody Late, and there is no timer.
//   - The lease is the record's, between ours and four times ours.
//   - A Late peer comes back with its second record, at least half a renewal after
//     the first. The first one stops the grace time. Whose endpoints were not ready
//     is remembered over a restart.
//   - A removed key takes what it has signed with it, at once. Rotate with two keys.
//   - An export is shared when all its parts are there; until then its last version
//     stays. Exports that a new record does not have go at once.
//   - Only exports in namespaces that exist here are held. Of the rest there are
//     the record, deflated, and the names of its namespaces: a namespace that
//     appears is served from there. A member with 50 exports in 20 namespaces, of
//     which one exists here, takes 6 kB (BenchmarkMemoryOfAThousandMembers).
//   - Ranges, policy and our own ranges are applied when shares are read, not when
//     parts are taken: when one changes there is nothing to take again.
//   - The cluster list in effect is part of Memory: a commit that removes a third of
//     it while the agent is down is held as well, with keys and ranges.
//   - Two living clusters of one name: who finds the other's record under its own
//     name puts nothing until that one has been silent for a lease.
package peer
