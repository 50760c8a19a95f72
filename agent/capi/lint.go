package capi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const maxResources = 100

// Finding is one thing in a bundle that goes wrong when a cluster is born.
type Finding struct {
	// File is "" for objects that are not written yet; Line counts from 1.
	File string
	Line int
	// Object is Kind/namespace/name, with the key and the object inside.
	Object string
	// Text says what is wrong and what to do.
	Text string
}

// String gives "file:line: object: text", without what is not known.
func (f Finding) String() string {
	place := f.File
	if f.File != "" && f.Line > 0 {
		place += ":" + strconv.Itoa(f.Line)
	}
	if place != "" {
		place += ": "
	}
	return place + f.Object + ": " + f.Text
}

// Lint looks at the ClusterResourceSets among objects and at what they send:
// whether Cluster API can send it, and whether it can live in a cluster that has
// no CNI, no DNS and no kube-proxy yet. Findings stand in the order of objects.
// Objects that no set sends are not looked at; no set at all is no finding.
func Lint(objects []Object) []Finding {
	l := linter{objects: objects}
	for _, o := range objects {
		if o.is(addonsGroup, setKind) {
			l.set(o)
		}
	}
	return l.findings
}

// Sets counts the ClusterResourceSets among objects.
func Sets(objects []Object) int {
	count := 0
	for _, o := range objects {
		if o.is(addonsGroup, setKind) {
			count++
		}
	}
	return count
}

type linter struct {
	objects  []Object
	findings []Finding
}

func (l *linter) add(at Object, inside, format string, args ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	finding := Finding{File: at.File, Line: at.Line, Object: at.String() + inside, Text: text}
	if !slices.Contains(l.findings, finding) { // two sets may send one source
		l.findings = append(l.findings, finding)
	}
}

// set looks at one ClusterResourceSet and follows it to its sources.
func (l *linter) set(set Object) {
	l.head(set)
	s := sending{linter: l, set: set, strategy: l.strategy(set), selector: l.selector(set)}
	references, _, err := unstructured.NestedSlice(set.Object, "spec", "resources")
	switch {
	case err != nil:
		l.add(set, "", "spec.resources must be a list")
	case len(references) == 0:
		l.add(set, "", "it sends nothing: name its ConfigMaps under spec.resources")
	case len(references) > maxResources:
		l.add(set, "", "%d resources: at most %d are allowed, make two sets of it", len(references), maxResources)
	}
	var sources []Object
	for _, r := range references {
		reference, _ := r.(map[string]any)
		if source, ok := l.source(set, reference); ok {
			sources = append(sources, source)
		}
	}
	s.sources(sources)
}

func (l *linter) head(set Object) {
	if version := set.GroupVersionKind().Version; !slices.Contains(versions(), version) {
		l.add(set, "", "apiVersion %s is not served any more: write %s/v1beta2", set.GetAPIVersion(), addonsGroup)
	}
	if set.GetName() == "" {
		l.add(set, "", "it has no name")
	}
	if set.GetNamespace() == "" {
		l.add(set, "", "it has no namespace: write that of its Clusters, others it can't see")
	}
}

func (l *linter) strategy(set Object) string {
	strategy, _, _ := unstructured.NestedString(set.Object, "spec", "strategy")
	switch strategy {
	case "":
		l.add(set, "", "no strategy: write %s for the agent, %s for identity and credentials; it can't be changed later", applyOnce, reconcile)
		return applyOnce
	case applyOnce, reconcile:
	default:
		l.add(set, "", "strategy %.40q: %s and %s are known", strategy, applyOnce, reconcile)
	}
	return strategy
}

// selector gives the value that matchLabels wants of ClusterLabel, or "".
func (l *linter) selector(set Object) string {
	labels, _, wrong := unstructured.NestedStringMap(set.Object, "spec", "clusterSelector", "matchLabels")
	expressions, _, wrongToo := unstructured.NestedSlice(set.Object, "spec", "clusterSelector", "matchExpressions")
	if wrong != nil || wrongToo != nil {
		l.add(set, "", "spec.clusterSelector must be a label selector")
		return ""
	}
	if len(labels) == 0 && len(expressions) == 0 {
		l.add(set, "", "the selector is empty: Cluster API refuses it; select by label %s", ClusterLabel)
	}
	var keys []string
	for key := range labels {
		keys = append(keys, key)
	}
	for _, e := range expressions {
		expression, _ := e.(map[string]any)
		key, _ := expression["key"].(string)
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if !strings.Contains(key, "/") {
			l.add(set, "", "it selects by label %.80q, which people edit, and nothing that was sent is taken back: select by %s", key, ClusterLabel)
		}
	}
	return labels[ClusterLabel]
}

// source finds what a set refers to.
func (l *linter) source(set Object, reference map[string]any) (Object, bool) {
	kind, _ := reference["kind"].(string)
	name, _ := reference["name"].(string)
	if kind != "ConfigMap" && kind != "Secret" {
		l.add(set, "", "resource %.80q is of kind %.40q: only ConfigMap and Secret are sent", name, kind)
		return Object{}, false
	}
	for _, o := range l.objects {
		if o.is("", kind) && o.GetName() == name && o.GetNamespace() == set.GetNamespace() {
			return o, true
		}
	}
	l.add(set, "", "%s/%s/%.80s is in none of the files: Cluster API skips it and reports success; add it, or give its file too", kind, set.GetNamespace(), name)
	return Object{}, false
}
