package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fleetling/fleetling/e2e/world"
)

// step is one thing that the demo shows.
type step struct {
	title string
	run   func(context.Context) error
}

// walk takes the steps one after the other, says how long it has taken so far, and
// stops at the first that fails.
func walk(ctx context.Context, out io.Writer, steps []step) error {
	start := time.Now()
	elapsed := func() string { return fmt.Sprintf("[%6.1fs]", time.Since(start).Seconds()) }
	for i, s := range steps {
		fmt.Fprintf(out, "%s %d/%d %s\n", elapsed(), i+1, len(steps), s.title)
		if err := attempt(ctx, s.run); err != nil {
			fmt.Fprintf(out, "%s FAILED at step %d, %s: %v\n", elapsed(), i+1, s.title, err)
			return err
		}
	}
	fmt.Fprintf(out, "%s all %d steps done\n", elapsed(), len(steps))
	return nil
}

// attempt runs a step, or a part of one. Fatalf inside it comes out as its error.
func attempt(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case world.Fatal:
			err = errors.New(string(failure))
		default:
			panic(failure)
		}
	}()
	return run(ctx)
}

// printf writes lines under the step's title.
func (d *demo) printf(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintf(d.out, "            %s\n", line)
	}
}
