package main

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/e2e/world"
)

func TestStepsAreTakenInOrderWithTheirNumbers(t *testing.T) {
	d := &demo{out: &strings.Builder{}}
	out := &strings.Builder{}
	d.out = out
	err := walk(t.Context(), out, []step{
		{"First", func(context.Context) error { d.printf("one\ntwo\n"); return nil }},
		{"Second", func(context.Context) error { return nil }},
	})
	require.NoError(t, err)
	assert.Equal(t, "[T] 1/2 First\n            one\n            two\n[T] 2/2 Second\n[T] all 2 steps done\n", withoutTimes(out.String()))
}

func TestStepThatFailsIsTheLast(t *testing.T) {
	s := &world.Scope{}
	for name, run := range map[string]func(context.Context) error{
		"by its error":  func(context.Context) error { return errors.New("it is: bad") },
		"by its Fatalf": func(context.Context) error { s.Fatalf("it is: %s", "bad"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			out := &strings.Builder{}
			err := walk(t.Context(), out, []step{
				{"First", run},
				{"Second", func(context.Context) error { t.Error("it was taken"); return nil }},
			})
			require.EqualError(t, err, "it is: bad")
			assert.Equal(t, "[T] 1/2 First\n[T] FAILED at step 1, First: it is: bad\n", withoutTimes(out.String()))
		})
	}
}

func TestPanicOfAStepIsNotSwallowed(t *testing.T) {
	assert.PanicsWithValue(t, "a mistake", func() {
		_ = walk(t.Context(), &strings.Builder{}, []step{{"First", func(context.Context) error { panic("a mistake") }}})
	})
}

func TestScopeIsUndoneInReverse(t *testing.T) {
	var s world.Scope
	var order []string
	s.Cleanup(func() { order = append(order, "first") })
	dir := s.TempDir()
	s.Cleanup(func() {
		assert.DirExists(t, dir, "it was made before")
		order = append(order, "last")
	})
	s.CleanUp()
	s.CleanUp()
	assert.Equal(t, []string{"last", "first"}, order)
	assert.NoDirExists(t, dir)
}

func withoutTimes(text string) string {
	return regexp.MustCompile(`(?m)^\[ *[0-9.]+s\]`).ReplaceAllString(text, "[T]")
}
