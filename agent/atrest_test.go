package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMemoryIsGivenBackOnceAtRest(t *testing.T) {
	given := 0
	a := atRest{giveBack: func() { given++ }}
	var after []int
	for _, news := range []bool{true, false, false, false, true, false, true, false, false} {
		a.looked(news)
		after = append(after, given)
	}
	assert.Equal(t, []int{0, 0, 1, 1, 1, 1, 1, 1, 2}, after)
}
