package git_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/gittest"
)

const canary = "s3cr3t-canary"

func TestRemoteValidate(t *testing.T) {
	key := gittest.NewSSHKey(t, "me", "ed25519")
	other := gittest.NewSSHKey(t, "other", "ed25519")
	sshFiles := map[string]string{"identity": privateKey(t, key), "known_hosts": "git.example.com " + key.Line + "\n"}
	for name, test := range map[string]struct {
		url, branch string
		files       map[string]string
		reason      sources.Reason // "" is valid
		words       string
	}{
		"https without credentials is fine":      {url: "https://git.example.com/org/fleet.git"},
		"https with a port is fine":              {url: "https://git.example.com:8443/org/fleet.git"},
		"an address is fine":                     {url: "https://[2001:db8::1]:8443/fleet"},
		"a space in the path is fine":            {url: "https://dev.example.com/My%20Project/_git/fleet"},
		"plain http without credentials is fine": {url: "http://127.0.0.1:8080/fleet.git"},
		"basic is fine":                          {url: "https://h/p", files: map[string]string{"username": "u", "password": "p"}},
		"bearer is fine":                         {url: "https://h/p", files: map[string]string{"bearerToken": "t\n"}},
		"ssh is fine":                            {url: "ssh://git@git.example.com/org/fleet.git", files: sshFiles},
		"ssh without a user is fine":             {url: "ssh://git.example.com:2222/org/fleet.git", files: sshFiles},
		"the scp form has a kind answer":         {url: "git@git.example.com:org/fleet.git", reason: sources.Unreachable, words: "write ssh://USER@git.example.com/org/fleet.git"},
		"no scheme":                              {url: "git.example.com/org/fleet.git", reason: sources.Unreachable, words: "https://HOST/PATH"},
		"file":                                   {url: "file:///srv/git/fleet.git", reason: sources.Unreachable, words: "scheme is not known"},
		"git":                                    {url: "git://git.example.com/fleet.git", reason: sources.Unreachable, words: "scheme is not known"},
		"ext":                                    {url: "ext::sh -c true", reason: sources.Unreachable},
		"nothing":                                {url: "", reason: sources.Unreachable, words: "not known"},
		"a user in https":                        {url: "https://" + canary + "@h/p", reason: sources.Unreachable, words: "credentials folder"},
		"a password in https":                    {url: "https://u:" + canary + "@h/p", reason: sources.Unreachable, words: "credentials folder"},
		"a password in ssh":                      {url: "ssh://git:" + canary + "@h/p", files: sshFiles, reason: sources.Unreachable, words: "identity"},
		"a password in a URL that does not parse": {url: "https://u:" + canary + "/x@h:y/p", reason: sources.Unreachable, words: "not a URL"},
		"a query":                                 {url: "https://h/p?token=" + canary, reason: sources.Unreachable, words: "no ?"},
		"a fragment":                              {url: "https://h/p#main", reason: sources.Unreachable, words: "no #"},
		"no path":                                 {url: "https://h/", reason: sources.Unreachable, words: "path"},
		"a path that climbs":                      {url: "https://h/a/../b", reason: sources.Unreachable, words: ".."},
		"a path that a shell would read":          {url: "ssh://h/a'$(id)'", files: sshFiles, reason: sources.Unreachable, words: "path"},
		"a path with a newline":                   {url: "ssh://h/a%0ab", files: sshFiles, reason: sources.Unreachable, words: "path"},
		"a host that is an option":                {url: "ssh://-oProxyCommand=id/p", files: sshFiles, reason: sources.Unreachable, words: "host"},
		"a port that is none":                     {url: "https://h:70000/p", reason: sources.Unreachable, words: "port"},
		"a short branch":                          {url: "https://h/p", branch: "main", reason: sources.BranchNotFound, words: "write refs/heads/NAME"},
		"a tag":                                   {url: "https://h/p", branch: "refs/tags/v1", reason: sources.BranchNotFound, words: "full ref name"},
		"a branch that git does not allow":        {url: "https://h/p", branch: "refs/heads/a..b", reason: sources.BranchNotFound, words: "not a valid ref name"},
		"credentials over plain http":             {url: "http://h/p", files: map[string]string{"username": "u", "password": canary}, reason: sources.AuthenticationFailed, words: "never sent over plain http"},
		"basic and bearer":                        {url: "https://h/p", files: map[string]string{"username": "u", "password": canary, "bearerToken": canary}, reason: sources.AuthenticationFailed, words: "one of the two"},
		"a username alone":                        {url: "https://h/p", files: map[string]string{"username": canary}, reason: sources.AuthenticationFailed, words: "both username and password"},
		"a password of two lines":                 {url: "https://h/p", files: map[string]string{"username": "u", "password": canary + "\nX-Evil: 1"}, reason: sources.AuthenticationFailed, words: "one line"},
		"a ca.crt that holds no certificate":      {url: "https://h/p", files: map[string]string{"ca.crt": canary}, reason: sources.CertificateInvalid, words: "ca.crt"},
		"a certificate without its key":           {url: "https://h/p", files: map[string]string{"tls.crt": canary}, reason: sources.CertificateInvalid, words: "tls.key"},
		"a certificate and a key that are none":   {url: "https://h/p", files: map[string]string{"tls.crt": canary, "tls.key": canary}, reason: sources.CertificateInvalid, words: "tls.key"},
		"ssh without known_hosts":                 {url: "ssh://git.example.com/p", files: map[string]string{"identity": privateKey(t, key)}, reason: sources.HostKeyMismatch, words: "ssh-keyscan git.example.com"},
		"ssh with known_hosts that can't be read": {url: "ssh://git.example.com/p", files: map[string]string{"identity": privateKey(t, key), "known_hosts": "# ok\nnonsense\n"}, reason: sources.HostKeyMismatch, words: "known_hosts:2"},
		"ssh without identity":                    {url: "ssh://git.example.com/p", files: map[string]string{"known_hosts": sshFiles["known_hosts"]}, reason: sources.AuthenticationFailed, words: "identity"},
		"ssh with an identity that is none":       {url: "ssh://git.example.com/p", files: map[string]string{"known_hosts": sshFiles["known_hosts"], "identity": canary}, reason: sources.AuthenticationFailed, words: "identity"},
		"ssh needs no check of files for https":   {url: "ssh://git.example.com/p", files: with(sshFiles, "bearerToken", canary)},
		"a public key is no identity":             {url: "ssh://git.example.com/p", files: with(sshFiles, "identity", other.Line), reason: sources.AuthenticationFailed, words: "private key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := git.Remote{URL: test.url, Branch: main, Timeout: time.Second, Credentials: credentials(t, test.files)}
			if test.branch != "" {
				r.Branch = test.branch
			}
			err := r.Validate()
			if test.reason == "" {
				require.NoError(t, err)
				return
			}
			because(t, err, test.reason, test.words)
			assert.NotContains(t, err.Error(), canary)
		})
	}
}

func with(files map[string]string, name, content string) map[string]string {
	more := map[string]string{name: content}
	for n, c := range files {
		if n != name {
			more[n] = c
		}
	}
	return more
}

func TestRemoteValidateNeedsATimeout(t *testing.T) {
	because(t, git.Remote{URL: "https://h/p", Branch: main}.Validate(), sources.Unreachable, "timeout")
}

func TestRemoteValidateNamesACredentialsFolderThatIsNotThere(t *testing.T) {
	r := git.Remote{URL: "https://h/p", Branch: main, Timeout: time.Second, Credentials: "/nowhere/git"}
	because(t, r.Validate(), sources.AuthenticationFailed, "/nowhere/git")
}

func TestRemoteValidateRefusesAnEndlessCredential(t *testing.T) {
	dir := credentials(t, map[string]string{"ca.crt": strings.Repeat("x", 1<<20+1)})
	r := git.Remote{URL: "https://h/p", Branch: main, Timeout: time.Second, Credentials: dir}
	because(t, r.Validate(), sources.AuthenticationFailed, "more than 1 MiB")
}

func TestRemoteReadsAMountedSecret(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..2026_01"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "..2026_01", "username"), []byte("u"), 0o600))
	require.NoError(t, os.Symlink("..2026_01", filepath.Join(dir, "..data")))
	require.NoError(t, os.Symlink("..data/username", filepath.Join(dir, "username")))
	r := git.Remote{URL: "https://h/p", Branch: main, Timeout: time.Second, Credentials: dir}
	because(t, r.Validate(), sources.AuthenticationFailed, "both username and password")
}

func TestRemoteDoesNotReadOutOfTheCredentialsFolder(t *testing.T) {
	outside := credentials(t, map[string]string{"token": canary})
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(outside, "token"), filepath.Join(dir, "bearerToken")))
	r := git.Remote{URL: "https://h/p", Branch: main, Timeout: time.Second, Credentials: dir}
	because(t, r.Validate(), sources.AuthenticationFailed, "bearerToken")
}

func TestRequestIsPlainData(t *testing.T) {
	want := git.Request{
		Remote: git.Remote{
			URL: "https://h/p", Branch: main, Credentials: "/c", Timeout: time.Minute,
			Limits: sources.DefaultLimits(), Proxy: httpproxy.Config{HTTPSProxy: "http://proxy:3128", NoProxy: "h"},
		},
		Dir: "/d", Have: "1234",
	}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	var got git.Request
	require.NoError(t, json.Unmarshal(data, &got))
	assert.Empty(t, cmp.Diff(want, got))
}
