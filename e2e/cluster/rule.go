package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule is what a proxy does with the requests that it is for. Its steps are
// taken in the order of its fields.
type Rule struct {
	// Match says which requests; nil is all. It is called for one request at a time.
	Match func(*http.Request) bool
	// Times is for how many of them, from the first on; 0 is all.
	Times int
	// Before runs before the API server sees the request. It may block.
	Before func(*http.Request)
	// Delay is waited, or until the client has given up.
	Delay time.Duration
	// Refuse is the HTTP status to answer with, in place of the API server.
	Refuse int
	// Drop breaks the connection; the API server never sees the request. With
	// a Before that kills the client: it died before the request left.
	Drop bool
	// After runs when the API server has answered with a status and before the
	// client sees it. With an After that kills the client: the request is
	// done, and the client doesn't know.
	After func(r *http.Request, status int)
}

// Requests matches a method, any where it is empty, and a part of the path.
func Requests(method, path string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return (method == "" || r.Method == method) && strings.Contains(r.URL.Path, path)
	}
}

// before takes the steps before the request is handed on, and tells whether
// that ends it.
func (rule Rule) before(w http.ResponseWriter, r *http.Request) bool {
	if rule.Before != nil {
		rule.Before(r)
	}
	if rule.Delay > 0 {
		wait(r.Context(), rule.Delay)
	}
	if rule.Refuse != 0 {
		refuse(w, rule.Refuse)
		return true
	}
	if rule.Drop {
		panic(http.ErrAbortHandler)
	}
	return false
}

func wait(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// refuse answers as an API server does, so that clients know the error.
func refuse(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons(code), Message: "refused by a rule of the test's proxy",
	}
	// The client may be gone.
	_ = json.NewEncoder(w).Encode(status)
}

// reasons gives the reason that Kubernetes has for an HTTP status.
func reasons(code int) metav1.StatusReason {
	switch code {
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusNotFound:
		return metav1.StatusReasonNotFound
	case http.StatusConflict:
		return metav1.StatusReasonConflict
	case http.StatusTooManyRequests:
		return metav1.StatusReasonTooManyRequests
	case http.StatusServiceUnavailable:
		return metav1.StatusReasonServiceUnavailable
	default:
		return metav1.StatusReasonInternalError
	}
}

// Switch is a rule that was laid down.
type Switch struct {
	rule Rule

	mu    sync.Mutex
	off   bool
	count int
}

// Off ends the rule for the requests from now on.
func (s *Switch) Off() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = true
}

// Count is how many requests the rule was for so far.
func (s *Switch) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func (s *Switch) take(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.rule.Times > 0 && s.count >= s.rule.Times || s.rule.Match != nil && !s.rule.Match(r) {
		return false
	}
	s.count++
	return true
}

type rulesKey struct{}

func withRules(ctx context.Context, rules []Rule) context.Context {
	return context.WithValue(ctx, rulesKey{}, rules)
}

func rulesOf(ctx context.Context) []Rule {
	rules, _ := ctx.Value(rulesKey{}).([]Rule)
	return rules
}
