package main

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetling/fleetling/e2e/world"
)

func TestEachGivesEveryClusterItsTurn(t *testing.T) {
	d := &demo{members: []*world.Member{{}, {}}}
	turns := make([]*world.Member, 2)
	err := d.each(t.Context(), func(_ context.Context, i int, m *world.Member) error { turns[i] = m; return nil })
	assert.NoError(t, err)
	for i := range turns {
		assert.Same(t, d.members[i], turns[i])
	}
}

func TestEachGivesWhatFailedInACluster(t *testing.T) {
	d := &demo{members: []*world.Member{{}, {}}}
	for name, fail := range map[string]func() error{
		"by its error":  func() error { return errors.New("it is: bad") },
		"by its Fatalf": func() error { d.Fatalf("it is: %s", "bad"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			err := d.each(t.Context(), func(_ context.Context, i int, _ *world.Member) error {
				if i == 0 {
					return nil
				}
				return fail()
			})
			assert.EqualError(t, err, "it is: bad")
		})
	}
}
