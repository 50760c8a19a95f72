package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDifferencesNameWhatCameWentAndChanged(t *testing.T) {
	before := map[string]string{"same": "1", "changed": "1", "gone": "1"}
	after := map[string]string{"same": "1", "changed": "2", "new": "1"}
	assert.Equal(t, []string{"changed", "gone", "new"}, differences(before, after))
	assert.Empty(t, differences(before, before))
}
