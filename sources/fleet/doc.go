// Package fleet works out what belongs on one cluster: from fleetling.yaml, the
// cluster entries, the tree they stand in and what the cluster was told at
// birth (Identity). Read validates the repository's side once; Select is a pure
// function of its arguments: same input, same result, same digest.
//
//	fleetling.yaml ─┐
//	cluster entries ┼─ Read ─> Fleet ─┐
//	                │                 ├─ Select ─> Selection (add-ons, digest)
//	tree (fs.FS) ───┴─────────────────┤
//	identity.yaml ─── ParseIdentity ──┘
//
// It guarantees that a failure is never an empty selection: every problem is a
// *sources.Error with reason, file, line and a sentence that says what to do,
// and up to 20 of them are joined, in file order. It refuses what could mean
// two things: unknown keys, keys that stand twice, anchors, aliases, merge keys,
// and strings that another YAML reader takes for a boolean or a number.
//
// # Who is concerned
//
// What is wrong with fleetling.yaml, with a file of entries as a whole, or with
// whose entry it is (apiVersion, kind, metadata.name, keys beside these that
// stand twice, two entries of one name) holds every cluster. Everything else in
// an entry is kept in Cluster.Problem and holds that cluster alone; so does a
// label or a path that only this cluster lacks.
//
// # Decisions
//
//   - Labels are a security boundary: the entry's labels count as a whole, never
//     mixed with the identity's. A differing identity is told in
//     Selection.Differs. Labels that fleetling.yaml does not declare are not kept.
//   - IdentityDiffers is the reason for another clusterSet, the one difference
//     that is refused. A broken identity is IdentityMissing (there is none that
//     could be used) unless UnknownField, InvalidLabelValue or LimitExceeded says
//     more.
//   - NotIn and DoesNotExist on a label that is not required are
//     InvalidFleetFile: they match clusters that lack the label by mistake.
//   - A selector value off the label's list is InvalidLabelValue: it would match
//     nothing, or everything, for ever.
//   - A glob that matches no file is PathNotFound, a missing fleetling.yaml
//     InvalidFleetFile. fs.Glob isn't used: it takes a folder that can't be read
//     for an empty one, and a cluster would lose its entry by that.
//   - A document without kind, a List, and a Cluster API kind that is Cluster but
//     for its case are refused, not ignored: each may hide an entry.
//   - The file must have an add-on (`addons: []` is refused), but a cluster may be
//     selected by none of them: that is what its labels say, not a failure.
//   - Acknowledgements may name an add-on that is gone from the file: its removal
//     is what they release.
//   - Nothing is never a value: a key without one (null) is refused, also among
//     the labels of an entry. Only a key that is not there is absent.
//   - Annotation fleetling.dev/endpoint-cidrs separates ranges by commas or white
//     space. A range of all addresses, and one of IPv4 in IPv6, is refused. One
//     bad range, or key, leaves none of its annotation or list.
//   - A path that is a URL is not repeated in the error: it may hold a password.
//   - YAML is read from go.yaml.in/yaml/v3 nodes, because lines are needed and an
//     alias is never expanded there. Its syntax errors carry their line in the
//     text only.
package fleet
