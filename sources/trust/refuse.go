package trust

import (
	"fmt"

	"github.com/fleetling/fleetling/sources"
)

// refuse gives the verdict on the commit id: what is wrong, and what to do.
func refuse(reason sources.Reason, id, format string, args ...any) error {
	return &sources.Error{
		Reason: reason,
		Err:    fmt.Errorf("commit %.12s: %w; %s", id, fmt.Errorf(format, args...), advice(reason)),
	}
}

// advice says what a person does about a refused head. Every sentence has to
// lead to a head that is signed throughout from the pin on.
func advice(reason sources.Reason) string {
	const (
		without = "take it out of the branch: a head that descends from the pin and is signed throughout is taken"
		anew    = "sign it with a key in signers/ of its first parent"
	)
	return map[sources.Reason]string{
		sources.MalformedCommit:       "make it again with git, or " + without,
		sources.NonCanonicalSignature: "sign it again with ssh-keygen or gpg through git commit -S, or " + without,
		sources.Unsigned:              anew + ", or " + without,
		sources.UnknownKey:            anew + " (a new key is added there first, by a commit that a present one signs), or " + without,
		sources.RevokedKey:            "sign it again with a key that is not revoked, or put a commit by such a key on top of the pin",
		sources.WeakAlgorithm:         "sign it again with ed25519, NIST ECDSA or RSA of 2048 bits and SHA-256 or better, or " + without,
		sources.ClockSkew:             "set the clock of the signer or of this node: it is judged again as time goes by",
		sources.ExpiredKey:            "prolong the key in signers/ by a commit before it, or " + without,
		sources.BadSignature:          "it was changed after it was signed: make it again, or " + without,
		sources.HistoryRewound:        "go back by a new signed commit on top of the pin; only if the branch was rewritten on purpose, delete the pin's ConfigMap and introduce the cluster again",
		sources.NotIntroduced:         "set trust.signers and trust.commit of the configuration to this repository's, or mend the branch",
		sources.LimitExceeded:         "make it smaller, or pin a later first commit and introduce the cluster again",
	}[reason]
}
