package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// askTime bounds one question.
const askTime = 3 * time.Second

// Choose asks all candidates at once, with the TLS settings and credentials of
// config, and gives the first one in order that answers. The error says why each
// does not.
func Choose(ctx context.Context, config *rest.Config, candidates []Candidate) (Candidate, error) {
	answers := make([]error, len(candidates))
	var asking sync.WaitGroup
	for i, c := range candidates {
		asking.Go(func() { answers[i] = ask(ctx, config, c) })
	}
	asking.Wait()
	if chosen, ok := First(candidates, answers); ok {
		return chosen, nil
	}
	return Candidate{}, errors.Join(answers...)
}

// ask is nil when an API server is there. Without a right to ask it is there,
// too: at birth RBAC comes after the port.
func ask(ctx context.Context, config *rest.Config, c Candidate) error {
	one := rest.CopyConfig(config)
	one.Host, one.Timeout, one.RateLimiter = c.URL, askTime, nil
	client, err := rest.HTTPClientFor(one)
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+"/livez", nil)
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Origin, err)
	}
	defer func() { _ = response.Body.Close() }()
	if !slices.Contains([]int{http.StatusOK, http.StatusUnauthorized, http.StatusForbidden}, response.StatusCode) {
		return fmt.Errorf("%s: it answers %s", c, response.Status)
	}
	return nil
}
