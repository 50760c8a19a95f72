// Package record is what members of a ClusterSet tell each other, and its
// encoding.
//
//	Record, Status ── Encode ──> payload ── Seal ──> sealed bytes for a carrier
//	Slice          ── EncodeSlice ──> part, named in the Record by its digest
//
// It guarantees: one value has one encoding (JSON, keys in a fixed order, lists
// sorted, times in UTC), so that digests can be compared; what is decoded is
// within the limits of limits.go and sound, so that nobody checks it again; what
// Encode gives, Decode takes.
//
// It refuses: another schema (ErrSchema), what is too large (ErrTooLarge), what
// is not sound (ErrMalformed), a key that is not the member's (ErrUnknownKey), a
// signature that does not verify (ErrSignature). Unknown fields are ignored: the
// signature covers the bytes, and newer members may say more.
//
// Decisions:
//   - A sealed blob is the armored SSHSIG (OpenSSH PROTOCOL.sshsig), then the
//     payload. Cut after the line END, both halves go into ssh-keygen -Y verify.
//     The armor is taken in one form only, so that whoever runs the carrier can't
//     make a second blob of the same record.
//   - A part carries neither schema nor signature: the record that names its
//     digest has both.
//   - Limits are checked in two steps. Size, depth and the length of every list
//     are checked on the text, before values are made of it: 256 KiB of "{}," is
//     some 20 MiB of exports otherwise. What concerns meaning is checked after.
//   - Values are those that this version can apply (protocol, type, policies). An
//     unknown one is an error for the whole record, because an import that drops
//     a policy does something else than the exporter asked for.
//   - A private key is only in NewKey's answer and in Key, which prints its
//     fingerprint.
package record
