// Package render turns a path of a fleet repository into Kubernetes objects: in
// memory, without network, programs or temporary files.
//
//	fs.FS -> scan -> kustomize, or its short way -> objects -> checked, sorted, digest
//	         (refuses)                              (substitute)
//
// It guarantees: the same tree and Request give the same objects, the same
// digest and the same error texts; zero objects, a file that can't be read and
// a file that is only half understood are errors, never "nothing to install";
// every object names the file it comes from; every error names the file, the
// line where the parser knows it, and what to do, and holds no value of a
// Secret; what is read stays within sources.Limits.
//
// It refuses, before kustomize sees anything: whatever could be fetched (URLs,
// remote bases, in any field that holds a path, also of built-in plugins),
// programs (any generator, transformer or validator that is not kustomize's
// own), Helm charts, openapi, fields that kustomize does not know, paths and
// links out of the repository, submodules, LFS pointers, circles of bases; in
// YAML duplicate keys, keys that are no text, tags, aliases beyond a budget,
// deep nesting, documents that a parser would drop in silence, text that is not
// UTF-8, values that SOPS encrypted; objects without apiVersion, kind or name,
// with generateName, with ownerReferences, or twice. What only a server writes
// (uid, resourceVersion, managedFields ...) is left out with a warning; status
// stays, because only the server knows whether it is a subresource.
//
// # Decisions
//
// The scan reads every file that a build could read, and kustomize gets a view
// of exactly these files. A reference that the scan missed is therefore a
// missing file and not a way out. http is the exception, because kustomize asks
// for URLs past its file system: so the scan takes for remote whatever
// kustomize could, by kustomize's own rules and wider ones.
//
// A kustomization of our own lies over every add-on: it lists the base and the
// components and asks for the origin of each object, which then leaves again.
// Of the base's buildMetadata the label works; its two annotations would name
// this file and are left out. Where an object's note of origin is gone, its
// file is the kustomization of the add-on.
//
// Kustomizations that only list resources, and folders without one, are
// concatenated without kustomize. What kustomize does to such objects all the
// same is done here too: annotations become text (1.10 stays "1.10"), null and
// empty ones go, its own notes and objects marked local-config go, lists are
// flattened, 0644 is 420, 1e9 is 1000000000, an unquoted date becomes a time.
// The order of its output means nothing here: objects come sorted. Tests build
// every case, and every kustomization of the corpora, both ways and by
// kustomize alone.
//
// One difference from the command line of kustomize is wanted: its writer
// breaks folded text (`>`) that has indented lines in it once more. Objects here
// hold the text that the file holds.
//
// A folder without a kustomization file is all its *.yaml and *.yml, hidden
// files too: an error on one that is no manifest is seen, a silent rule is not.
//
// The schema of kustomize (45 MiB to load) is loaded once for a process and
// never reset: openapi is refused, and a schema that something else in the
// process has set is dropped before a build. kustomize is not safe for two
// builds at once: a Renderer holds one lock, so a process has one Renderer.
// kustomize ignores contexts, prints its notes on deprecated fields to standard
// error, exits the process on some faults of its own (log.Fatal), and grows
// without bound under a JSON patch that copies a value onto itself again and
// again: Render is made to be called in a child with a deadline and a memory
// limit.
//
// Results are kept for the last 64 requests, with the hash of every answer that
// the file system gave. A result is used again when all answers are the same;
// then it costs reading and hashing. It is copied for every caller, who may
// change it (labels are added before an apply): a copy is cheap beside a
// request to an API server, a shared map that somebody changed is a day lost.
//
// # Cost
//
// Two loaded cores; bytes and allocations are exact, times are not. "Again" is
// the same request while nothing changed.
//
//	                                        first               again
//	1 object, plain                         0.4 ms   0.08 MB    0.03 ms
//	1 object, kustomize                     3 ms     0.8 MB     0.05 ms
//	50 Deployments, plain                   8 ms     2.2 MB     1 ms
//	50 Deployments, kustomize, namespace    50 ms    18 MB      1 ms
//	50 Deployments, one patch for all       145 ms   33 MB      2 ms
//	kube-prometheus (131, 2.5 MB), plain    0.4 s    70 MB      32 ms    12 MB
//	kube-prometheus through kustomize       3.2 s    670 MB
//	1000 ConfigMaps, plain                  0.1 s    14 MB      4 ms     1.2 MB
//	1000 ConfigMaps, kustomize, namespace   4 s      111 MB     5 ms
//	1000 generated ConfigMaps               3.7 s    241 MB     5 ms
//
// kustomize compares every object with every other: 250 ConfigMaps take 0.35 s,
// 500 1 s, 1000 4 s. Many objects belong into files that are only listed.
package render
