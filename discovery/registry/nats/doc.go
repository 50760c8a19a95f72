// Package nats carries records in a key-value bucket of NATS JetStream: one bucket
// per ClusterSet, with changes told as they happen.
//
//	$KV.BUCKET.NAME.record     sealed          headers: Fleetling-Digest
//	$KV.BUCKET.NAME.status     sealed
//	$KV.BUCKET.NAME.part.HEX   one per part, named by its SHA-256
//
// It is for fleets that have outgrown polling a Git repository, or want failover
// in less than a second. Somebody has to run the servers: three or more, in
// failure domains of their own.
//
// # The bucket
//
// An administrator makes it, with nats-server 2.11 or later:
//
//	nats kv add clusterset --replicas=3 --history=1 --marker-ttl=1h --max-value-size=1MiB
//
// # The servers' configuration
//
// An account of its own, and in it a user for each member, who may write below its
// own name only. With nkeys (`nk -gen user`), for the members alice and bob and the
// bucket clusterset:
//
//	accounts {
//	  CLUSTERSET {
//	    jetstream: enabled
//	    users: [
//	      {nkey: NKEY_ADMIN}
//	      {nkey: NKEY_ALICE, permissions: {
//	        publish: {allow: [
//	          "$KV.clusterset.alice.>"
//	          "$JS.API.STREAM.INFO.KV_clusterset"
//	          "$JS.API.CONSUMER.CREATE.KV_clusterset.>"
//	          "$JS.API.CONSUMER.MSG.NEXT.KV_clusterset.>"
//	          "$JS.API.CONSUMER.DELETE.KV_clusterset.>"
//	          "$JS.API.DIRECT.GET.KV_clusterset.>"
//	        ]}
//	        subscribe: {allow: ["_INBOX.alice.>"]}
//	      }}
//	      {nkey: NKEY_BOB, permissions: {
//	        publish: {allow: [
//	          "$KV.clusterset.bob.>"
//	          "$JS.API.STREAM.INFO.KV_clusterset"
//	          "$JS.API.CONSUMER.CREATE.KV_clusterset.>"
//	          "$JS.API.CONSUMER.MSG.NEXT.KV_clusterset.>"
//	          "$JS.API.CONSUMER.DELETE.KV_clusterset.>"
//	          "$JS.API.DIRECT.GET.KV_clusterset.>"
//	        ]}
//	        subscribe: {allow: ["_INBOX.bob.>"]}
//	      }}
//	    ]
//	  }
//	}
//
// With an operator and JWTs (nsc) the same permissions stand in the user's claims,
// and Options.CredsFile has them. The tests run a server with the text above.
//
// A member may delete another's reader, whose name is random and which nobody can
// list: it would only list again.
//
// What NATS does not prevent: a server sends the answer to a request to whatever
// subject the request names. So a member can have an answer stored under another
// member's key, and by that hide that member's record until it is put again. It
// can't forge it, because records are signed.
//
// # A mirror on each side
//
// Members in a place that may be cut off talk to a leaf node there with a JetStream
// domain of its own and a mirror of the bucket, by the same name. They read from
// the mirror, also while cut off, and write through the leaf node: cut off, a put
// is an error that says so. The mirror is a stream, not made by `nats kv add`:
// named KV_BUCKET, with one message per subject, direct reads and message TTLs
// allowed, and the mirrored stream's domain, say hub. A member of the leaf needs
// "$JS.hub.API.$KV.BUCKET.NAME.>" in place of "$KV.BUCKET.NAME.>".
//
// # Guarantees
//
//   - Who can't write to another member's keys gets ErrDenied, and at once.
//   - Put writes parts, then record and status, then takes out what is no longer
//     wanted. It asks what is there, and writes only what differs.
//   - Heads are all heads or an error. No value is read for them, but where
//     somebody else's program wrote one.
//   - A lost server, leader or not, is a request that is made again, within
//     Options.Timeout. Nothing is queued to be sent later.
//   - In memory are heads, of at most 2000 members, and never values.
//
// # Decisions
//
//   - A key that is taken out leaves a mark that goes after an hour: without, each
//     part that ever was would leave one for ever.
//   - Watch does not take up where it was, but lists again: 200 bytes per key, and
//     nothing to get wrong.
//   - Another server than the one written to may be some milliseconds behind. Get
//     waits for it where a head has been seen; Heads does not.
//   - The digest in the header is the writer's claim. Get compares.
package nats
