package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Key signs commits.
type Key interface {
	// Public is the content of the key's file in signers/.
	Public() string
	// File is the name of that file: NAME.pub or NAME.asc.
	File() string
	// gitConfig are the arguments that make git sign with it.
	gitConfig() []string
}

// SSHKey is made by ssh-keygen.
type SSHKey struct {
	// Name is the key's name among the signers.
	Name string
	// Private is the path of the private key.
	Private string
	// Line is the public key as an authorized_keys line.
	Line string
}

// NewSSHKey makes a key of a type that ssh-keygen knows: "ed25519", "rsa".
// args are more arguments for ssh-keygen, such as "-b", "1024".
func NewSSHKey(t T, name, kind string, args ...string) *SSHKey {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	run(t, "", "ssh-keygen", append([]string{"-q", "-t", kind, "-N", "", "-C", name, "-f", path}, args...)...)
	line, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &SSHKey{Name: name, Private: path, Line: strings.TrimSpace(string(line))}
}

// Public is the public key's line.
func (k *SSHKey) Public() string { return k.Line + "\n" }

// File is NAME.pub.
func (k *SSHKey) File() string { return k.Name + ".pub" }

func (k *SSHKey) gitConfig() []string {
	return []string{"-c", "gpg.format=ssh", "-c", "user.signingKey=" + k.Private}
}

// PGPKey is made by gpg, in a home of its own.
type PGPKey struct {
	// Name is the key's name among the signers.
	Name string
	// Home is the GNUPGHOME that holds the secret key.
	Home string
	// Fingerprint is the primary key's, 40 upper-case hexadecimal digits.
	Fingerprint string
}

// NewPGPKey makes a key without passphrase. algo and expire are gpg's words:
// "ed25519", "rsa3072"; "0", "1d".
func NewPGPKey(t T, name, algo, expire string) *PGPKey {
	t.Helper()
	// gpg-agent's socket path is bounded: a short folder, not t.TempDir().
	home, err := os.MkdirTemp("", "gpg")
	if err != nil {
		t.Fatalf("%v", err)
	}
	k := &PGPKey{Name: name, Home: home}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	k.GPG(t, "", "--passphrase", "", "--quick-generate-key", name+" <"+name+"@example.com>", algo, "sign", expire)
	for line := range strings.Lines(k.GPG(t, "", "--with-colons", "--list-keys")) {
		if rest, ok := strings.CutPrefix(line, "fpr:::::::::"); ok && k.Fingerprint == "" {
			k.Fingerprint = strings.Trim(rest, ":\n")
		}
	}
	return k
}

// Public is the armored public key as it stands now.
func (k *PGPKey) Public() string {
	out, err := exec.Command("gpg", "--homedir", k.Home, "--batch", "--armor", "--export").Output()
	if err != nil {
		return ""
	}
	return string(out)
}

// File is NAME.asc.
func (k *PGPKey) File() string { return k.Name + ".asc" }

// GPG runs gpg in the key's home and gives what it printed.
func (k *PGPKey) GPG(t T, input string, args ...string) string {
	t.Helper()
	return run(t, input, "gpg", append([]string{"--homedir", k.Home, "--batch", "--yes", "--quiet", "--pinentry-mode", "loopback"}, args...)...)
}

func (k *PGPKey) gitConfig() []string {
	// git has no option for gpg's home: a program of one line sets it.
	program := filepath.Join(k.Home, "gpg.sh")
	script := "#!/bin/sh\nexec gpg --homedir '" + k.Home + "' --batch --pinentry-mode loopback \"$@\"\n"
	_ = os.WriteFile(program, []byte(script), 0o755)
	return []string{"-c", "gpg.format=openpgp", "-c", "gpg.program=" + program, "-c", "user.signingKey=" + k.Fingerprint}
}

func run(t T, input, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
