package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/fleetling/fleetling/sources"
)

const (
	incomingPack  = packFolder + "/incoming.pack"
	incomingIndex = packFolder + "/incoming.idx"
)

// askFor is the request for one commit, given the commits that we have. A thin
// pack is not asked for: each pack stands alone, so that a damaged one damages
// no other and no delta reaches out of what was scanned.
func askFor(head plumbing.Hash, haves []plumbing.Hash, server *capability.List) (*packp.UploadPackRequest, error) {
	req := packp.NewUploadPackRequest()
	req.Wants = []plumbing.Hash{head}
	req.Haves = haves
	for _, wanted := range []capability.Capability{capability.OFSDelta, capability.Sideband64k, capability.NoProgress} {
		if server.Supports(wanted) {
			if err := req.Capabilities.Set(wanted); err != nil {
				return nil, err
			}
		}
	}
	return req, nil
}

// packOf gives the pack in an answer, out of the sideband where there is one.
func packOf(req *packp.UploadPackRequest, res io.Reader) io.Reader {
	if req.Capabilities.Supports(capability.Sideband64k) {
		return sideband.NewDemuxer(sideband.Sideband64k, res)
	}
	return res
}

// incoming is a received pack that is not yet part of the repository. The zero
// value is a pack without objects.
type incoming struct {
	*pack
	name    string
	objects int
}

// receive writes a pack down, scans it on its way, and then, when nothing in it
// is too big, indexes it and adds it to s.
func receive(ctx context.Context, root *os.Root, r io.Reader, limits sources.Limits, s *store) (incoming, error) {
	file, err := root.OpenFile(incomingPack, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return incoming{}, err
	}
	places, checksum, err := scanPack(ctx, io.TeeReader(r, file), limits)
	if err != nil || len(places) == 0 {
		return incoming{}, errors.Join(err, file.Close())
	}
	if err := checkEnd(file, packName(checksum)); err != nil {
		return incoming{}, errors.Join(err, file.Close())
	}
	return add(ctx, root, file, places, checksum, limits, s)
}

// add indexes a pack that was written down, and adds it to s. It takes over file.
func add(ctx context.Context, root *os.Root, file *os.File, places []place, checksum plumbing.Hash, limits sources.Limits, s *store) (incoming, error) {
	in := incoming{name: packName(checksum), objects: len(places)}
	if err := file.Sync(); err != nil {
		return incoming{}, errors.Join(err, file.Close())
	}
	index, err := indexPack(ctx, file, checksum, places, limits)
	if err == nil {
		err = writeIndex(root, index)
	}
	if err != nil {
		return incoming{}, errors.Join(err, file.Close())
	}
	in.pack = s.add(index, file)
	return in, nil
}

// checkEnd finds what was sent after the end of a pack.
func checkEnd(file *os.File, name string) error {
	if err := checkTail(file, checksumSize, name); err != nil {
		return garbled(err)
	}
	return nil
}

func writeIndex(root *os.Root, index *idxfile.MemoryIndex) error {
	return writeFile(root, incomingIndex, func(w io.Writer) error {
		_, err := idxfile.NewEncoder(w).Encode(index)
		return err
	})
}

// install makes a received pack part of the repository. The list of packs is
// written last: a pack that is not on it is a leftover.
func (in incoming) install(d *disk) error {
	final := path.Join(packFolder, in.name)
	if err := errors.Join(d.root.Rename(incomingIndex, final+".idx"), d.root.Rename(incomingPack, final+".pack")); err != nil {
		return fmt.Errorf("install %s: %w", in.name, err)
	}
	return writePackList(d.root, append(d.packs, in.name))
}
