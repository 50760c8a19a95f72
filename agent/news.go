package agent

import (
	"github.com/go-logr/logr"
)

// logNews says what the source loop found that is new: state changes only.
func logNews(log logr.Logger, last, next findings) {
	if v := next.verified; v != nil && (last.verified == nil || last.verified.Commit != v.Commit) {
		log.Info("verified", "commit", v.Commit, "signer", v.Signer, "introduced", v.Introduced, "commits", v.Steps)
	}
	for what, errs := range map[string][2]error{
		"source":    {last.contact, next.contact},
		"head":      {last.refusal, next.refusal},
		"selection": {last.selectErr, next.selectErr},
		"identity":  {last.told.err, next.told.err},
	} {
		switch {
		case errs[1] != nil && (errs[0] == nil || errs[0].Error() != errs[1].Error()):
			log.Info("not good", "what", what, "error", errs[1].Error())
		case errs[1] == nil && errs[0] != nil:
			log.Info("good again", "what", what)
		}
	}
}
