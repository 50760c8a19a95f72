// Package clusterset carries this cluster's exports to the other members and
// theirs to the importer: one goroutine between carrier, peers and importer.
//
//	own exports ── publish ──> carrier ── heads, bytes ──> peers ── shares ──> importer
//	signed list, namespaces, own ranges ────────────────────┘
//
// A round takes what is new in the inbox, reads what the carrier has that is new,
// tells the peers whether our own record can be read back, publishes what is due,
// and keeps and reports what has changed. A carrier that does not answer ends a
// round early and changes nothing that is here.
//
// What has to survive a restart is kept by the Store: the signed list too, so that
// a new Pod takes part while Git is away.
package clusterset
