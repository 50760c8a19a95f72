package git_test

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/adler32"
	"io"
	"io/fs"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

// Types of pack entries, gitformat-pack(5).
const (
	commitType = 1
	treeType   = 2
	blobType   = 3
	tagType    = 4
	ofsDelta   = 6
	refDelta   = 7
)

const gib = 1 << 30

// packer writes packs that git would not.
type packer struct {
	body  bytes.Buffer
	count uint32
}

// entry writes an entry that says it has size bytes. base is what stands between
// header and content of a delta.
func (p *packer) entry(kind byte, size uint64, base, compressed []byte) (offset int) {
	offset = 12 + p.body.Len()
	first := kind<<4 | byte(size&15)
	if size >>= 4; size > 0 {
		first |= 0x80
	}
	p.body.WriteByte(first)
	for size > 0 {
		next := byte(size & 0x7f)
		if size >>= 7; size > 0 {
			next |= 0x80
		}
		p.body.WriteByte(next)
	}
	p.body.Write(base)
	p.body.Write(compressed)
	p.count++
	return offset
}

// object writes an object as git would, and gives its id.
func (p *packer) object(kind byte, content string) string {
	p.entry(kind, uint64(len(content)), nil, deflate([]byte(content)))
	return objectID(kind, content)
}

func objectID(kind byte, content string) string {
	name := map[byte]string{commitType: "commit", treeType: "tree", blobType: "blob", tagType: "tag"}[kind]
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", name, len(content), content))
	return hex.EncodeToString(sum[:])
}

// history writes a commit with one file, and gives the commit's id.
func (p *packer) history(content string) string {
	return p.object(commitType, commitOf(p.object(treeType, treeLine("100644", "file", p.object(blobType, content)))))
}

func commitOf(tree string, parents ...string) string {
	text := "tree " + tree + "\n"
	for _, parent := range parents {
		text += "parent " + parent + "\n"
	}
	return text + "author A <a@x> 1700000000 +0000\ncommitter A <a@x> 1700000000 +0000\n\nm\n"
}

func treeLine(mode, name, id string) string {
	raw, _ := hex.DecodeString(id)
	return mode + " " + name + "\x00" + string(raw)
}

// bytes gives the pack, with the number of entries that the header says.
func (p *packer) bytes() []byte {
	pack := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), p.count)
	pack = append(pack, p.body.Bytes()...)
	sum := sha1.Sum(pack)
	return append(pack, sum[:]...)
}

// deflate is a zlib stream (RFC 1950) of one stored block, of less than 64 KiB:
// zlib.Writer would take most of the tests' time.
func deflate(content []byte) []byte {
	out := []byte{0x78, 0x01, 1}
	out = binary.LittleEndian.AppendUint16(out, uint16(len(content)))
	out = binary.LittleEndian.AppendUint16(out, ^uint16(len(content)))
	return binary.BigEndian.AppendUint32(append(out, content...), adler32.Checksum(content))
}

// zeros is a zlib stream of so many MiB of zeros, made without compressing
// them: a block that ends at a byte can stand there again and again.
func zeros(mib int) []byte {
	var block bytes.Buffer
	w, _ := flate.NewWriter(&block, flate.BestCompression)
	_, _ = w.Write(make([]byte, 1<<20))
	_ = w.Flush()
	stream := append([]byte{0x78, 0x9c}, bytes.Repeat(block.Bytes(), mib)...)
	stream = append(stream, 1, 0, 0, 0xff, 0xff) // an empty last block
	return binary.BigEndian.AppendUint32(stream, uint32(mib<<20%65521)<<16|1)
}

// back is the offset of an OFS_DELTA's base.
func back(n int) []byte {
	out := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		out = append([]byte{0x80 | byte(n&0x7f)}, out...)
	}
	return out
}

// copyFour is a delta that makes the same of a base of four bytes.
func copyFour() []byte { return []byte{4, 4, 0x80 | 0x10 | 0x20, 4, 0} }

// sameAgain is a delta that makes the same of a base of n bytes, a multiple of
// 64 KiB below 16 MiB.
func sameAgain(n int) []byte {
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)), uint64(n))
	for at := 0; at < n; at += 1 << 16 {
		delta = append(delta, 0x80|0x04, byte(at>>16)) // without a size it is 64 KiB
	}
	return delta
}

// pktLine is the framing of gitprotocol-common(5).
func pktLine(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// advertise answers info/refs. The capability is ofs-delta alone: no sideband.
func advertise(w http.ResponseWriter, id string, refs ...string) {
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	text := pktLine("# service=git-upload-pack\n") + "0000"
	for i, ref := range refs {
		if i == 0 {
			ref += "\x00ofs-delta"
		}
		text += pktLine(id + " " + ref + "\n")
	}
	_, _ = io.WriteString(w, text+"0000")
}

// hostile serves head as main, and answers every request for it with reply.
func hostile(t *testing.T, head string, reply func(w io.Writer)) git.Request {
	t.Helper()
	s := gittest.ServeHTTP(t, t.TempDir(), gittest.HTTPOptions{})
	s.SetBackend(answer(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			advertise(w, head, main)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		reply(w)
	}))
	return request(t, s.URL)
}

// sends is a reply of a pack.
func sends(pack []byte) func(io.Writer) {
	return func(w io.Writer) { _, _ = w.Write(append([]byte(pktLine("NAK\n")), pack...)) }
}

func TestPackerWritesWhatCanBeFetched(t *testing.T) {
	var p packer
	head := p.history("hello\n")
	base := p.entry(blobType, 1<<20, nil, zeros(1))
	offset := 12 + p.body.Len()
	delta := append(binary.AppendUvarint(binary.AppendUvarint(nil, 1<<20), 10), 0x80|0x10, 10)
	p.entry(ofsDelta, uint64(len(delta)), back(offset-base), deflate(delta))
	r := hostile(t, head, sends(p.bytes()))
	assert.Equal(t, 5, fetch(t, r).Objects)
	whole(t, r.Dir, head)
}

func TestAnObjectThatIsThereTwiceIsReadFromWhatStandsAlone(t *testing.T) {
	x, y := "content x", "content y"
	makes := func(from, to string) []byte { // a delta that takes nothing of its base
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(from))), uint64(len(to)))
		return append(append(delta, byte(len(to))), to...)
	}
	base := func(content string) []byte { id, _ := hex.DecodeString(objectID(blobType, content)); return id }
	var p packer
	p.entry(refDelta, uint64(len(makes(y, x))), base(y), deflate(makes(y, x)))
	p.entry(refDelta, uint64(len(makes(x, y))), base(x), deflate(makes(x, y)))
	tree := p.object(treeType, treeLine("100644", "x", p.object(blobType, x))+treeLine("100644", "y", objectID(blobType, y)))
	head := p.object(commitType, commitOf(tree))
	r := hostile(t, head, sends(p.bytes()))
	fetch(t, r)
	files := treeIn(t, r.Dir, tree, sources.DefaultLimits())
	for name, want := range map[string]string{"x": x, "y": y} {
		got, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		assert.Equal(t, want, string(got))
	}
}

func TestG13Bombs(t *testing.T) {
	for name, test := range map[string]struct {
		pack  func(p *packer)
		words string
	}{
		"1 GiB of zeros in 1 MiB":                  {func(p *packer) { p.entry(blobType, gib, nil, zeros(1024)) }, "limits.objectBytes"},
		"1 GiB of zeros that says 5 bytes":         {func(p *packer) { p.entry(blobType, 5, nil, zeros(1024)) }, "longer than the 5 bytes"},
		"1 GiB of zeros that says what is allowed": {func(p *packer) { p.entry(treeType, 8<<20, nil, zeros(1024)) }, "longer than the 8388608 bytes"},
		"a delta of 1 GiB": {func(p *packer) {
			p.object(blobType, "x")
			p.entry(refDelta, gib, make([]byte, 20), zeros(1024))
		}, "limits.objectBytes"},
		"a delta that makes 1 GiB": {func(p *packer) {
			base := p.entry(blobType, 1, nil, deflate([]byte("x")))
			delta := append(binary.AppendUvarint([]byte{1}, gib), bytes.Repeat([]byte{0x80 | 0x10, 1}, 1000)...)
			p.entry(ofsDelta, uint64(len(delta)), back(12+p.body.Len()-base), deflate(delta))
		}, "a delta of the pack makes an object of 1073741824 bytes"},
		"deltas on deltas, by offset": {func(p *packer) {
			last := p.entry(blobType, 4, nil, deflate([]byte("base")))
			for range 4096 {
				offset := 12 + p.body.Len()
				last = p.entry(ofsDelta, 5, back(offset-last), deflate(copyFour()))
			}
		}, "chain of more than 4095 deltas"},
		"more objects than allowed": {func(p *packer) { p.object(blobType, "x"); p.count = 500_001 }, "limits.objects allows 500000"},
		"4 billion objects":         {func(p *packer) { p.object(blobType, "x"); p.count = 1<<32 - 1 }, "limits.objects"},
	} {
		t.Run(name, func(t *testing.T) {
			var p packer
			head := p.history("hello\n")
			test.pack(&p)
			r := hostile(t, head, sends(p.bytes()))
			allocated(t, 48<<20, func() { refused(t, r, sources.LimitExceeded, test.words) })
			assert.NoDirExists(t, r.Dir)
			assert.NoDirExists(t, r.Dir+".new")
		})
	}
}

// allocated asserts that f allocates no more than most bytes in all, so that
// what it holds at once can't be more either.
func allocated(t *testing.T, most uint64, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, most)
}

func TestG13DeltasOnDeltasByReference(t *testing.T) {
	var p packer
	head := p.history("hello\n")
	// Each delta adds a byte, so that each result has an id of its own.
	content := "0"
	p.object(blobType, content)
	for i := range 4097 {
		base, _ := hex.DecodeString(objectID(blobType, content))
		n := len(content)
		delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n)), uint64(n+1))
		delta = append(delta, 0x80|0x10|0x20, byte(n), byte(n>>8), 1, byte('a'+i%26))
		p.entry(refDelta, uint64(len(delta)), base, deflate(delta))
		content += string(rune('a' + i%26))
	}
	refused(t, hostile(t, head, sends(p.bytes())), sources.LimitExceeded, "chain of more than 4095 deltas")
}

func TestG13DeltasOnDeltasOfTheLargestSize(t *testing.T) {
	const largest = 1 << 20
	for name, test := range map[string]struct {
		deltas int
		reason sources.Reason // "" is taken
	}{"as git makes them": {50, ""}, "a chain as long as can be": {200, sources.LimitExceeded}} {
		t.Run(name, func(t *testing.T) {
			var p packer
			head := p.history("hello\n")
			last := p.entry(blobType, largest, nil, zeros(1))
			delta := sameAgain(largest)
			for range test.deltas {
				offset := 12 + p.body.Len()
				last = p.entry(ofsDelta, uint64(len(delta)), back(offset-last), deflate(delta))
			}
			r := hostile(t, head, sends(p.bytes()))
			r.Limits.ObjectBytes = largest
			if test.reason == "" {
				fetch(t, r)
				return
			}
			refused(t, r, test.reason, "chain of deltas of more than 67108864 bytes")
		})
	}
}

func TestFetchBoundsTheBytesOnTheWire(t *testing.T) {
	for name, serve := range serving() {
		t.Run(name, func(t *testing.T) {
			repo := seeded(t)
			noise := make([]byte, 1<<20)
			_, _ = rand.Read(noise)
			repo.Write("noise", string(noise))
			repo.Commit("noise", nil)
			r := serve(t, repo)
			r.Limits.PackBytes = 1 << 18
			refused(t, r, sources.LimitExceeded, "the server sent more than", "limits.packBytes")
			assert.NoDirExists(t, r.Dir)
			r.Limits.PackBytes = 1 << 21
			fetch(t, r)
		})
	}
}

func TestFetchEndsAnEndlessAnswer(t *testing.T) {
	var p packer
	head := p.history("hello\n")
	forever := func(w io.Writer, what string) {
		for {
			if _, err := io.WriteString(w, what); err != nil {
				return
			}
		}
	}
	t.Run("of one object", func(t *testing.T) {
		r := hostile(t, head, func(w io.Writer) {
			var p packer
			p.entry(blobType, 8<<20, nil, []byte{0x78, 0x9c})
			pack := p.bytes()
			sends(pack[:len(pack)-20])(w)
			forever(w, strings.Repeat("\x00\x00\x00\xff\xff", 1000)) // empty blocks, which make no byte
		})
		r.Limits.PackBytes = 1 << 20
		allocated(t, 48<<20, func() { refused(t, r, sources.LimitExceeded, "limits.packBytes") })
	})
	t.Run("of acknowledgements", func(t *testing.T) {
		r := hostile(t, head, func(w io.Writer) { forever(w, pktLine("NAK\n")) })
		r.Limits.PackBytes = 1 << 20
		refused(t, r, sources.LimitExceeded, "limits.packBytes")
	})
	t.Run("of refs", func(t *testing.T) {
		s := gittest.ServeHTTP(t, t.TempDir(), gittest.HTTPOptions{})
		s.SetBackend(answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = io.WriteString(w, pktLine("# service=git-upload-pack\n")+"0000"+pktLine(head+" "+main+"\x00ofs-delta\n"))
			forever(w, pktLine(head+" refs/heads/"+strings.Repeat("x", 1000)+"\n"))
		}))
		allocated(t, 64<<20, func() { refused(t, request(t, s.URL), sources.LimitExceeded, "delete refs") })
	})
	t.Run("of a proxy", func(t *testing.T) {
		s := gittest.ServeHTTP(t, t.TempDir(), gittest.HTTPOptions{})
		s.SetBackend(answer(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			forever(w, canary)
		}))
		allocated(t, 16<<20, func() { refused(t, request(t, s.URL), sources.Unreachable, "502") })
	})
}

func TestFetchBoundsTheNumberOfRefs(t *testing.T) {
	repo := seeded(t)
	head := repo.Head()
	tags := func(n int) {
		var packed strings.Builder
		for i := range n {
			fmt.Fprintf(&packed, "%s refs/tags/t%d\n", head, i)
		}
		repo.Write(".git/packed-refs", packed.String())
	}
	tags(10_000)
	r := request(t, gittest.ServeHTTP(t, repo.Dir, gittest.HTTPOptions{}).URL)
	refused(t, r, sources.LimitExceeded, "10001 refs", "delete refs")
	tags(9_999)
	assert.Equal(t, head, fetch(t, r).Head)
}

func TestFetchRefusesAPackThatIsBroken(t *testing.T) {
	var good packer
	head := good.history("hello\n")
	pack := good.bytes()
	broken := func(change func(p *packer)) []byte {
		var p packer
		p.history("hello\n")
		change(&p)
		return p.bytes()
	}
	flipped := bytes.Clone(pack)
	flipped[len(pack)/2] ^= 1
	for name, pack := range map[string][]byte{
		"nothing":                      nil,
		"not a pack":                   []byte("<html>" + canary + "</html>"),
		"cut in the header":            pack[:10],
		"cut in an object":             pack[:len(pack)/2],
		"cut in the checksum":          pack[:len(pack)-1],
		"a flipped bit":                flipped,
		"more after its end":           append(bytes.Clone(pack), "more"...),
		"another version":              append([]byte("PACK\x00\x00\x00\x09"), pack[8:]...),
		"fewer objects than it says":   broken(func(p *packer) { p.count++ }),
		"more objects than it says":    broken(func(p *packer) { p.count-- }),
		"an object shorter than said":  broken(func(p *packer) { p.entry(blobType, 100, nil, deflate([]byte("short"))) }),
		"an object that is not zlib":   broken(func(p *packer) { p.entry(blobType, 5, nil, []byte("short")) }),
		"an object of type 5":          broken(func(p *packer) { p.entry(5, 1, nil, deflate([]byte("x"))) }),
		"an object of type 0":          broken(func(p *packer) { p.entry(0, 1, nil, deflate([]byte("x"))) }),
		"a delta on itself":            broken(func(p *packer) { p.entry(ofsDelta, 5, back(0), deflate(copyFour())) }),
		"a delta on nothing":           broken(func(p *packer) { p.entry(ofsDelta, 5, back(3), deflate(copyFour())) }),
		"a delta on what is not there": broken(func(p *packer) { p.entry(refDelta, 5, make([]byte, 20), deflate(copyFour())) }),
		"a delta without sizes":        broken(func(p *packer) { p.entry(refDelta, 1, make([]byte, 20), deflate([]byte{0xff})) }),
		"a delta of nothing":           broken(func(p *packer) { p.entry(refDelta, 0, make([]byte, 20), deflate(nil)) }),
		"no objects":                   new(packer).bytes(),
		"other objects":                broken(func(p *packer) { *p = packer{}; p.object(blobType, "x") }),
	} {
		t.Run(name, func(t *testing.T) {
			r := hostile(t, head, sends(pack))
			r.Timeout = 10 * time.Second
			err := refusal(t, r, sources.Unreachable)
			assert.NotErrorIs(t, err, io.EOF)
			assert.NotContains(t, err.Error(), canary)
			assert.NoDirExists(t, r.Dir)
			assert.NoDirExists(t, r.Dir+".new")
		})
	}
}

func TestFetchRefusesAHeadThatIsNotWhole(t *testing.T) {
	blob := objectID(blobType, "x")
	for name, build := range map[string]func(p *packer) string{
		"without its tree":    func(p *packer) string { return p.object(commitType, commitOf(blob)) },
		"with a blob as tree": func(p *packer) string { return p.object(commitType, commitOf(p.object(blobType, "x"))) },
		"without its parent":  func(p *packer) string { return p.object(commitType, commitOf(p.object(treeType, ""), blob)) },
		"with a tree as parent": func(p *packer) string {
			tree := p.object(treeType, "")
			return p.object(commitType, commitOf(tree, tree))
		},
		"without a file": func(p *packer) string {
			return p.object(commitType, commitOf(p.object(treeType, treeLine("100644", "f", blob))))
		},
		"without a folder": func(p *packer) string {
			return p.object(commitType, commitOf(p.object(treeType, treeLine("40000", "f", blob))))
		},
		"without a link's target text": func(p *packer) string {
			return p.object(commitType, commitOf(p.object(treeType, treeLine("120000", "f", blob))))
		},
		"without a file far down": func(p *packer) string {
			deep := p.object(treeType, treeLine("100644", "f", blob))
			return p.object(commitType, commitOf(p.object(treeType, treeLine("40000", "d", deep))))
		},
		"without a file of an old commit": func(p *packer) string {
			old := p.object(commitType, commitOf(p.object(treeType, treeLine("100644", "f", blob))))
			return p.object(commitType, commitOf(p.object(treeType, ""), old))
		},
		"with a tree that is cut off":   func(p *packer) string { return p.object(commitType, commitOf(p.object(treeType, "100644 f\x00short"))) },
		"with a commit that is no text": func(p *packer) string { return p.object(commitType, "\x00\x01") },
		"with a commit of a bad tree":   func(p *packer) string { return p.object(commitType, "tree zz\n\nm\n") },
		"that is a tree":                func(p *packer) string { return p.object(treeType, "") },
		"that is a blob":                func(p *packer) string { return p.object(blobType, "") },
		"that is a tag": func(p *packer) string {
			return p.object(tagType, "object "+p.history("x")+"\ntype commit\ntag v1\ntagger A <a@x> 1 +0000\n\nm\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p packer
			head := build(&p)
			r := hostile(t, head, sends(p.bytes()))
			refused(t, r, sources.Unreachable)
			assert.NoDirExists(t, r.Dir)
		})
	}
}

func TestACommitThatCameAlongIsNoHeadUnlessItIsWhole(t *testing.T) {
	var p packer
	head := p.history("hello\n")
	stray := p.object(commitType, commitOf(objectID(treeType, "never sent"), head))
	s := gittest.ServeHTTP(t, t.TempDir(), gittest.HTTPOptions{})
	advertised := head
	s.SetBackend(answer(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			advertise(w, advertised, main)
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		sends(p.bytes())(w)
	}))
	r := request(t, s.URL)
	fetch(t, r)
	advertised = stray
	refused(t, r, sources.Unreachable, "did not send all")
	whole(t, r.Dir, head)
}

func TestASubmoduleIsNoReasonToRefuseTheHead(t *testing.T) {
	var p packer
	head := p.object(commitType, commitOf(p.object(treeType, treeLine("160000", "sub", objectID(blobType, "x")))))
	fetch(t, hostile(t, head, sends(p.bytes())))
}

func TestFetchPassesNoTextOfTheServerOn(t *testing.T) {
	var p packer
	head := p.history("hello\n")
	for name, reply := range map[string]string{
		"an error line":          pktLine("ERR " + canary),
		"something else":         pktLine(canary),
		"an error of a sideband": pktLine("NAK\n") + pktLine("\x03"+canary),
		"an unknown sideband":    pktLine("NAK\n") + pktLine("\x09"+canary),
	} {
		t.Run(name, func(t *testing.T) {
			s := gittest.ServeHTTP(t, t.TempDir(), gittest.HTTPOptions{})
			s.SetBackend(answer(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
					_, _ = io.WriteString(w, pktLine("# service=git-upload-pack\n")+"0000"+pktLine(head+" "+main+"\x00side-band-64k\n")+"0000")
					return
				}
				w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				_, _ = io.WriteString(w, reply)
			}))
			err := refusal(t, request(t, s.URL), sources.Unreachable)
			assert.NotContains(t, err.Error(), canary)
			assert.Len(t, s.Requests(), 4, "tried once more, as a clone")
		})
	}
	for name, refs := range map[string]string{
		"an error line instead of refs": pktLine("ERR " + canary),
		"an error line after refs":      pktLine(head+" "+main+"\x00ofs-delta\n") + pktLine("ERR "+canary),
		"text instead of refs":          pktLine(canary),
		"a ref that is cut":             pktLine(head + " " + main + "\x00ofs-delta\n"),
		"two spaces":                    pktLine(head+" "+main+"\x00ofs-delta\n") + pktLine(head+" "+canary+" x"),
	} {
		t.Run(name, func(t *testing.T) {
			s := gittest.ServeHTTP(t, t.TempDir(), gittest.HTTPOptions{})
			s.SetBackend(answer(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
				_, _ = io.WriteString(w, pktLine("# service=git-upload-pack\n")+"0000"+refs)
			}))
			err := refusal(t, request(t, s.URL), sources.Unreachable)
			assert.NotContains(t, err.Error(), canary)
		})
	}
}

func TestFetchTakesAnAnswerWithoutSideband(t *testing.T) {
	var p packer
	head := p.history("hello\n")
	r := hostile(t, head, sends(p.bytes()))
	assert.Equal(t, head, fetch(t, r).Head)
	disk := open(t, r.Dir)
	raw, err := disk.Commit(t.Context(), head)
	require.NoError(t, err)
	assert.Equal(t, head, objectID(commitType, string(raw)))
}
