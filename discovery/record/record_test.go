package record_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/discovery"
	"github.com/fleetling/fleetling/discovery/record"
)

var at = time.Date(2026, 11, 30, 12, 0, 0, 123e6, time.UTC)

func sound() record.Record {
	return record.Record{
		Schema: 1, ClusterSet: "prod", Cluster: "eu-1", ClusterUID: "0b5a1c1e-6c1f-4f0f-9d3c-1f6f8d6f7a10",
		Sequence: 7, Issued: at, LeaseSeconds: 180,
		Exports: []record.Export{{
			Namespace: "shop", Name: "cart", Created: at.Truncate(time.Second), Type: "ClusterSetIP",
			Ports:                  []record.Port{{Name: "http", Protocol: "TCP", AppProtocol: "kubernetes.io/h2c", Port: 80}, {Name: "quic", Protocol: "UDP", Port: 80}},
			SessionAffinity:        "ClientIP",
			AffinityTimeoutSeconds: 10,
			InternalTrafficPolicy:  "Cluster",
			TrafficDistribution:    "PreferSameZone",
			IPFamilies:             []string{"IPv6", "IPv4"},
			Labels:                 map[string]string{"app": "cart"},
			Annotations:            map[string]string{"Example.com/Note": "a <b> & c"},
			Parts:                  []discovery.Digest{discovery.DigestOf([]byte("1"))},
		}, {
			Namespace: "shop", Name: "db", Created: at.Truncate(time.Second), Type: "Headless",
		}},
	}
}

func soundSlice() record.Slice {
	return record.Slice{
		AddressType: "IPv4",
		Ports:       []record.SlicePort{{Name: "http", Protocol: "TCP", Port: 8080}, {Name: "web", Protocol: "TCP", Port: 8080}},
		Endpoints: []record.Endpoint{
			{Address: "10.1.0.9", Ready: true, Serving: true, Hostname: "db-0", Zone: "eu-1a"},
			{Address: "10.1.0.10", Serving: true, Terminating: true},
		},
	}
}

func soundStatus() record.Status {
	return record.Status{
		Schema: 1, ClusterSet: "prod", Cluster: "eu-1", Sequence: 7, Issued: at, LeaseSeconds: 180,
		Revision: "main@sha1:abc", Ready: true, AddOns: 3, Exports: 2, Failing: []string{"ingress"}, Version: "v1",
	}
}

func TestWhatIsEncodedIsDecodedAsItWas(t *testing.T) {
	payload, err := sound().Encode()
	require.NoError(t, err)
	got, err := record.DecodeRecord(payload)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(sound(), got), "-want +got")

	part, err := soundSlice().Encode()
	require.NoError(t, err)
	slice, err := record.DecodeSlice(part)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(soundSlice(), slice), "-want +got")

	payload, err = soundStatus().Encode()
	require.NoError(t, err)
	status, err := record.DecodeStatus(payload)
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(soundStatus(), status), "-want +got")
}

func TestOneValueHasOneEncodingWhateverOrderItsListsAreIn(t *testing.T) {
	want, err := sound().Encode()
	require.NoError(t, err)

	other := sound()
	other.Exports[0], other.Exports[1] = other.Exports[1], other.Exports[0]
	cart := &other.Exports[1]
	cart.Ports[0], cart.Ports[1] = cart.Ports[1], cart.Ports[0]
	cart.Parts = append(cart.Parts, cart.Parts[0])
	cart.Created = cart.Created.In(time.FixedZone("", 3600)).Add(time.Millisecond)
	other.Exports[0].Labels = map[string]string{}
	other.Issued = other.Issued.Add(time.Microsecond)
	got, err := other.Encode()
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
	assert.Equal(t, "UDP", cart.Ports[0].Protocol, "the value itself is not changed")

	slice := soundSlice()
	wantPart, err := slice.Encode()
	require.NoError(t, err)
	slice.Endpoints = []record.Endpoint{slice.Endpoints[1], slice.Endpoints[0], slice.Endpoints[1]}
	gotPart, err := slice.Encode()
	require.NoError(t, err)
	assert.Equal(t, string(wantPart), string(gotPart))
}

func TestTheOrderOfFamiliesIsTheServices(t *testing.T) {
	r := sound()
	want, err := r.Encode()
	require.NoError(t, err)
	r.Exports[0].IPFamilies = []string{"IPv4", "IPv6"}
	got, err := r.Encode()
	require.NoError(t, err)
	assert.NotEqual(t, string(want), string(got))
}

func TestARenewalHasTheSameContentAndAChangeHasNot(t *testing.T) {
	r := sound()
	want := r.Content()
	r.Sequence, r.Issued = 99, at.Add(time.Hour)
	assert.Equal(t, want, r.Content())
	r.Exports[0].Parts = nil
	assert.NotEqual(t, want, r.Content())
	assert.NotEqual(t, record.Record{}.Content(), want)
}

func TestOfPodsWithOneHostnameTheFirstKeepsIt(t *testing.T) {
	part, err := record.Slice{AddressType: "IPv4", Endpoints: []record.Endpoint{
		{Address: "10.0.0.2", Hostname: "web"}, {Address: "10.0.0.1", Hostname: "web"}, {Address: "10.0.0.3"},
	}}.Encode()
	require.NoError(t, err)
	got, err := record.DecodeSlice(part)
	require.NoError(t, err)
	assert.Equal(t, []record.Endpoint{{Address: "10.0.0.1", Hostname: "web"}, {Address: "10.0.0.2"}, {Address: "10.0.0.3"}}, got.Endpoints)
}

// change decodes JSON text of value, after change has had its way with it.
func changed(t *testing.T, value any, change func(map[string]any)) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	fields := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &fields))
	change(fields)
	data, err = json.Marshal(fields)
	require.NoError(t, err)
	return data
}

func export(fields map[string]any) map[string]any {
	return fields["exports"].([]any)[0].(map[string]any)
}

func repeated(value any, times int) []any {
	list := make([]any, times)
	for i := range list {
		list[i] = value
	}
	return list
}

func TestARecordThatIsNotSoundIsRefused(t *testing.T) {
	digest := string(discovery.DigestOf(nil))
	port := func(name, protocol string, number int) map[string]any {
		return map[string]any{"name": name, "protocol": protocol, "port": number}
	}
	for name, tc := range map[string]struct {
		change func(map[string]any)
		want   error
	}{
		"another schema":                   {func(f map[string]any) { f["schema"] = 2 }, record.ErrSchema},
		"no schema":                        {func(f map[string]any) { delete(f, "schema") }, record.ErrSchema},
		"another schema, other types":      {func(f map[string]any) { f["schema"], f["exports"] = 2, "none" }, record.ErrSchema},
		"a dotted cluster":                 {func(f map[string]any) { f["cluster"] = "a.b" }, record.ErrMalformed},
		"no clusterSet":                    {func(f map[string]any) { f["clusterSet"] = "" }, record.ErrMalformed},
		"a clusterUID with a line break":   {func(f map[string]any) { f["clusterUID"] = "a\nb" }, record.ErrMalformed},
		"sequence 0":                       {func(f map[string]any) { f["sequence"] = 0 }, record.ErrMalformed},
		"a sequence beyond the limit":      {func(f map[string]any) { f["sequence"] = uint64(record.MaxSequence + 1) }, record.ErrMalformed},
		"a negative sequence":              {func(f map[string]any) { f["sequence"] = -1 }, record.ErrMalformed},
		"no time":                          {func(f map[string]any) { delete(f, "issued") }, record.ErrMalformed},
		"no lease":                         {func(f map[string]any) { f["leaseSeconds"] = 0 }, record.ErrMalformed},
		"a lease of a week":                {func(f map[string]any) { f["leaseSeconds"] = 7 * 86400 }, record.ErrMalformed},
		"withdrawn with exports":           {func(f map[string]any) { f["withdrawn"] = true }, record.ErrMalformed},
		"an export that stands twice":      {func(f map[string]any) { f["exports"] = repeated(export(f), 2) }, record.ErrMalformed},
		"501 exports":                      {func(f map[string]any) { f["exports"] = repeated(map[string]any{}, 501) }, record.ErrTooLarge},
		"a namespace with a slash":         {func(f map[string]any) { export(f)["namespace"] = "a/b" }, record.ErrMalformed},
		"an upper-case name":               {func(f map[string]any) { export(f)["name"] = "Cart" }, record.ErrMalformed},
		"no creation time":                 {func(f map[string]any) { delete(export(f), "created") }, record.ErrMalformed},
		"an ExternalName":                  {func(f map[string]any) { export(f)["type"] = "ExternalName" }, record.ErrMalformed},
		"an unknown affinity":              {func(f map[string]any) { export(f)["sessionAffinity"] = "Sticky" }, record.ErrMalformed},
		"a timeout without ClientIP":       {func(f map[string]any) { export(f)["sessionAffinity"] = "None" }, record.ErrMalformed},
		"a timeout of two days":            {func(f map[string]any) { export(f)["affinityTimeoutSeconds"] = 172800 }, record.ErrMalformed},
		"an unknown traffic policy":        {func(f map[string]any) { export(f)["internalTrafficPolicy"] = "Node" }, record.ErrMalformed},
		"an unknown traffic distribution":  {func(f map[string]any) { export(f)["trafficDistribution"] = "Far" }, record.ErrMalformed},
		"an unknown family":                {func(f map[string]any) { export(f)["ipFamilies"] = []any{"IPv5"} }, record.ErrMalformed},
		"a family twice":                   {func(f map[string]any) { export(f)["ipFamilies"] = []any{"IPv4", "IPv4"} }, record.ErrMalformed},
		"port 0":                           {func(f map[string]any) { export(f)["ports"] = []any{port("a", "TCP", 0)} }, record.ErrMalformed},
		"port 65536":                       {func(f map[string]any) { export(f)["ports"] = []any{port("a", "TCP", 65536)} }, record.ErrMalformed},
		"a port beyond 32 bits":            {func(f map[string]any) { export(f)["ports"] = []any{port("a", "TCP", 1<<32+80)} }, record.ErrMalformed},
		"an unknown protocol":              {func(f map[string]any) { export(f)["ports"] = []any{port("a", "ICMP", 1)} }, record.ErrMalformed},
		"a port name twice":                {func(f map[string]any) { export(f)["ports"] = []any{port("a", "TCP", 1), port("a", "UDP", 1)} }, record.ErrMalformed},
		"two ports without name":           {func(f map[string]any) { export(f)["ports"] = []any{port("", "TCP", 1), port("", "UDP", 1)} }, record.ErrMalformed},
		"a port number twice":              {func(f map[string]any) { export(f)["ports"] = []any{port("a", "TCP", 1), port("b", "TCP", 1)} }, record.ErrMalformed},
		"101 ports":                        {func(f map[string]any) { export(f)["ports"] = repeated(map[string]any{}, 101) }, record.ErrTooLarge},
		"a label value with spaces":        {func(f map[string]any) { export(f)["labels"] = map[string]any{"a": "b c"} }, record.ErrMalformed},
		"a label key with two slashes":     {func(f map[string]any) { export(f)["labels"] = map[string]any{"a/b/c": ""} }, record.ErrMalformed},
		"an annotation key with spaces":    {func(f map[string]any) { export(f)["annotations"] = map[string]any{"a b": ""} }, record.ErrMalformed},
		"annotations beyond the limit":     {func(f map[string]any) { export(f)["annotations"] = map[string]any{"a": strings.Repeat("x", 5000)} }, record.ErrTooLarge},
		"65 annotations":                   {func(f map[string]any) { export(f)["annotations"] = many(65) }, record.ErrTooLarge},
		"a part that is no digest":         {func(f map[string]any) { export(f)["parts"] = []any{"sha256:abc"} }, record.ErrMalformed},
		"a digest in upper case":           {func(f map[string]any) { export(f)["parts"] = []any{"sha256:" + strings.ToUpper(digest[7:])} }, record.ErrMalformed},
		"101 parts":                        {func(f map[string]any) { export(f)["parts"] = digests(101) }, record.ErrTooLarge},
		"a list beyond all limits":         {func(f map[string]any) { f["new"] = repeated(1, 1001) }, record.ErrTooLarge},
		"nesting beyond all limits":        {func(f map[string]any) { f["new"] = json.RawMessage(strings.Repeat("[", 9) + strings.Repeat("]", 9)) }, record.ErrTooLarge},
		"a text where a number has to be":  {func(f map[string]any) { f["sequence"] = "7" }, record.ErrMalformed},
		"a number where a list has to be":  {func(f map[string]any) { f["exports"] = 7 }, record.ErrMalformed},
		"bytes beyond all limits":          {func(f map[string]any) { f["new"] = strings.Repeat("x", record.MaxSealed) }, record.ErrTooLarge},
		"a creation time in the year 9e99": {func(f map[string]any) { export(f)["created"] = "99999-01-01T00:00:00Z" }, record.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.DecodeRecord(changed(t, sound(), tc.change))
			require.ErrorIs(t, err, tc.want)
			assert.Less(t, len(err.Error()), 512)
		})
	}
}

func many(n int) map[string]any {
	pairs := map[string]any{}
	for i := range n {
		pairs[fmt.Sprintf("k%d", i)] = ""
	}
	return pairs
}

func digests(n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = discovery.DigestOf([]byte{byte(i)})
	}
	return list
}

func TestAPartThatIsNotSoundIsRefused(t *testing.T) {
	address := func(text string) func(map[string]any) {
		return func(f map[string]any) { f["endpoints"] = []any{map[string]any{"address": text}} }
	}
	six := func(text string) func(map[string]any) {
		return func(f map[string]any) { address(text)(f); f["addressType"] = "IPv6" }
	}
	for name, tc := range map[string]struct {
		change func(map[string]any)
		want   error
	}{
		"FQDN":                       {func(f map[string]any) { f["addressType"] = "FQDN" }, record.ErrMalformed},
		"no address":                 {address(""), record.ErrMalformed},
		"a name for an address":      {address("localhost"), record.ErrMalformed},
		"leading zeros":              {address("010.0.0.1"), record.ErrMalformed},
		"IPv6 in a slice of IPv4":    {address("fd00::1"), record.ErrMalformed},
		"IPv4 in a slice of IPv6":    {six("10.0.0.1"), record.ErrMalformed},
		"IPv4 mapped into IPv6":      {six("::ffff:10.0.0.1"), record.ErrMalformed},
		"a zone":                     {six("fe80::1%eth0"), record.ErrMalformed},
		"IPv6 not in its short form": {six("fd00:0::1"), record.ErrMalformed},
		"IPv6 in upper case":         {six("FD00::1"), record.ErrMalformed},
		"a hostname of two labels":   {func(f map[string]any) { f["endpoints"].([]any)[0].(map[string]any)["hostname"] = "a.b" }, record.ErrMalformed},
		"a hostname twice": {func(f map[string]any) {
			f["endpoints"].([]any)[1].(map[string]any)["hostname"] = "db-0"
		}, record.ErrMalformed},
		"a zone that is no label value": {func(f map[string]any) { f["endpoints"].([]any)[0].(map[string]any)["zone"] = "a b" }, record.ErrMalformed},
		"a port name twice":             {func(f map[string]any) { f["ports"].([]any)[1].(map[string]any)["name"] = "http" }, record.ErrMalformed},
		"101 ports":                     {func(f map[string]any) { f["ports"] = repeated(map[string]any{}, 101) }, record.ErrTooLarge},
		"1001 endpoints":                {func(f map[string]any) { f["endpoints"] = repeated(map[string]any{}, 1001) }, record.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.DecodeSlice(changed(t, soundSlice(), tc.change))
			assert.ErrorIs(t, err, tc.want)
		})
	}
	got, err := record.DecodeSlice(changed(t, soundSlice(), six("fd00::1")))
	require.NoError(t, err, "what the cases above begin with is sound")
	assert.Equal(t, []record.Endpoint{{Address: "fd00::1"}}, got.Endpoints)
}

func TestAStatusThatIsNotSoundIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(map[string]any)
		want   error
	}{
		"another schema":    {func(f map[string]any) { f["schema"] = 9 }, record.ErrSchema},
		"a long message":    {func(f map[string]any) { f["message"] = strings.Repeat("x", 513) }, record.ErrTooLarge},
		"six failing":       {func(f map[string]any) { f["failing"] = repeated("a", 6) }, record.ErrTooLarge},
		"a negative count":  {func(f map[string]any) { f["addOns"] = -1 }, record.ErrMalformed},
		"a cluster of none": {func(f map[string]any) { f["cluster"] = "" }, record.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.DecodeStatus(changed(t, soundStatus(), tc.change))
			assert.ErrorIs(t, err, tc.want)
		})
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	got, err := record.DecodeRecord(changed(t, sound(), func(f map[string]any) {
		f["new"] = map[string]any{"list": []any{1, "a", nil, map[string]any{}}}
		export(f)["new"] = true
	}))
	require.NoError(t, err)
	assert.Empty(t, cmp.Diff(sound(), got), "-want +got")
}

func TestTextThatIsNotOneValueIsRefused(t *testing.T) {
	payload, err := sound().Encode()
	require.NoError(t, err)
	text := string(payload)
	for name, data := range map[string]string{
		"nothing":              "",
		"a list":               "[]",
		"null":                 "null",
		"two values":           text + text,
		"half a value":         text[:len(text)/2],
		"a key twice":          `{"schema":1,` + text[1:],
		"a key twice, deeper":  strings.Replace(text, `"app":"cart"`, `"app":"cart","app":"x"`, 1),
		"a key twice, escaped": `{"sch\u0065ma":1,` + text[1:],
	} {
		t.Run(name, func(t *testing.T) {
			require.NotEqual(t, text, data)
			_, err := record.DecodeRecord([]byte(data))
			assert.Error(t, err)
		})
	}
}

func TestWhatOthersWouldRefuseIsNotEncoded(t *testing.T) {
	r := sound()
	r.Exports[0].Name = "a.b"
	_, err := r.Encode()
	require.ErrorIs(t, err, record.ErrMalformed)

	r = sound()
	r.Exports[0].Annotations = map[string]string{"a": "\xff"}
	_, err = r.Encode()
	require.ErrorIs(t, err, record.ErrMalformed)

	s := soundSlice()
	s.Endpoints = make([]record.Endpoint, 1001)
	for i := range s.Endpoints {
		s.Endpoints[i] = record.Endpoint{Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}
	}
	_, err = s.Encode()
	require.ErrorIs(t, err, record.ErrTooLarge)
}

func TestFiveHundredExportsFitAndAFullPartDoes(t *testing.T) {
	r := sound()
	r.Exports = nil
	for i := range record.MaxExports {
		r.Exports = append(r.Exports, record.Export{
			Namespace: fmt.Sprintf("namespace-of-twenty-%02d", i%50), Name: fmt.Sprintf("a-service-whose-name-is-some-40-long-%03d", i),
			Created: at, Type: "ClusterSetIP", SessionAffinity: "None", InternalTrafficPolicy: "Cluster", IPFamilies: []string{"IPv4"},
			Ports:  []record.Port{{Name: "http", Protocol: "TCP", Port: 80}, {Name: "metrics", Protocol: "TCP", Port: 9090}},
			Labels: map[string]string{"app.kubernetes.io/name": "service"},
			Parts:  []discovery.Digest{discovery.DigestOf([]byte{byte(i), byte(i >> 8)})},
		})
	}
	payload, err := r.Encode()
	require.NoError(t, err)
	t.Logf("500 exports: %d bytes", len(payload))
	_, err = record.Seal(record.KindRecord, payload, newKey(t))
	require.NoError(t, err)

	s := record.Slice{AddressType: "IPv6"}
	for i := range record.MaxEndpoints {
		s.Endpoints = append(s.Endpoints, record.Endpoint{
			Address: fmt.Sprintf("fd12:3456:789a:bcde:f012:3456:789a:%x", 0xb000+i), Ready: true, Serving: true,
			Hostname: fmt.Sprintf("a-stateful-set-whose-name-is-40-chars-%04d", i), Zone: "europe-west1-b",
		})
	}
	part, err := s.Encode()
	require.NoError(t, err)
	t.Logf("1,000 endpoints: %d bytes", len(part))
}

func TestSequenceNumbersRiseWhateverWasLost(t *testing.T) {
	now := time.UnixMilli(1000)
	for name, tc := range map[string]struct{ last, inCarrier, want uint64 }{
		"by the clock":                      {0, 0, 1000},
		"after the last, with a slow clock": {5000, 0, 5001},
		"after the carrier's, with a lost memory and a slow clock": {0, 7000, 7001},
		"after a renewal in the same millisecond":                  {1000, 1000, 1001},
		"a hostile number does not wrap around":                    {1 << 63, 1<<64 - 1, record.MaxSequence},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, record.NextSequence(tc.last, tc.inCarrier, now))
		})
	}
	assert.EqualValues(t, 1, record.NextSequence(0, 0, time.Time{}))
}
