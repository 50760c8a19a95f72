package record_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery/record"
)

func FuzzOpen(f *testing.F) {
	key := newKey(f)
	sealed := seal(f, record.KindRecord, "payload", key)
	f.Add(sealed)
	f.Add([]byte("-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		payload, _, err := record.Open(record.KindRecord, data, []string{key.Public()})
		if err == nil && (!bytes.Equal(data, sealed) || string(payload) != "payload") {
			t.Fatalf("opened what was never sealed: %q", data)
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	payload, err := sound().Encode()
	require.NoError(f, err)
	f.Add(payload)
	f.Add([]byte(`{"schema":1,"exports":[{},{}],"a":{"b":[1,null]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := record.DecodeRecord(data)
		if err != nil {
			return
		}
		first, err := got.Encode()
		require.NoError(t, err, "what is decoded can be encoded")
		again, err := record.DecodeRecord(first)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(got, again), "-want +got")
		second, err := again.Encode()
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
		require.Equal(t, got.Content(), again.Content())
	})
}

func FuzzDecodeSlice(f *testing.F) {
	part, err := soundSlice().Encode()
	require.NoError(f, err)
	f.Add(part)
	f.Add([]byte(`{"addressType":"IPv6","endpoints":[{"address":"fd00::1"},{"address":"fd00::1","ready":true}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := record.DecodeSlice(data)
		if err != nil {
			return
		}
		first, err := got.Encode()
		require.NoError(t, err)
		again, err := record.DecodeSlice(first)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(got, again), "-want +got")
	})
}
