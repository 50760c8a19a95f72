package sharing_test

import (
	"testing"
)

func TestAServiceReachesEveryClusterUnderOneName(t *testing.T) {
	all := sides(t, "ap", "eu", "us")
	ap, eu, us := all[0], all[1], all[2]
	for _, s := range []*side{ap, eu} {
		s.backend("catalog", 1, nil)
		s.export("catalog")
	}
	for _, s := range all {
		s.request()
		s.imported("catalog", "ap", "eu")
		s.has("catalog", "ap", 1)
		s.has("catalog", "eu", 1)
		s.prints("Address: ", "nslookup -type=A "+s.name("catalog")+".")
		s.prints("from ap", connect(s.name("catalog")))
		s.prints("from eu", connect(s.name("catalog")))
	}

	ap.scale("catalog", 0)
	us.has("catalog", "ap", 0)
	us.prints("from eu", connect(us.name("catalog")))

	ap.unexport("catalog")
	us.imported("catalog", "eu")
	eu.unexport("catalog")
	for _, s := range all {
		s.notImported("catalog")
	}
}
