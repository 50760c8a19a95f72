package agent

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetling/fleetling/sources"
	"github.com/fleetling/fleetling/sources/git"
	"github.com/fleetling/fleetling/sources/trust"
)

// Config is the configuration file, read and checked once. A changed file is a
// graceful exit: the next process reads it.
type Config struct {
	Remote     git.Remote
	Interval   time.Duration
	StaleAfter time.Duration
	Trust      Trust
	// Identity is the path of identity.yaml.
	Identity string
	// DataDir holds the clone; it may be lost.
	DataDir string
	// RegistryCredentials is a folder, which may be missing, with what the registry
	// of the ClusterSet asks for.
	RegistryCredentials string
	// Metrics and Health are addresses to listen on; "0" is off.
	Metrics, Health string

	// reached is where the API server answered, where there was a choice.
	reached string
}

// Trust is whom the agent believes before the repository tells it.
type Trust struct {
	// Signers is the folder of the first signers' keys.
	Signers string
	// Commit is the pinned first commit, or "".
	Commit string
	// Revoked are fingerprints that count for nothing any more.
	Revoked []string
}

// configFile is the file's shape.
type configFile struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Source     sourceFile   `json:"source"`
	Trust      trustFile    `json:"trust"`
	Identity   string       `json:"identity"`
	DataDir    string       `json:"dataDir"`
	Listen     listenFile   `json:"listen"`
	Registry   registryFile `json:"registry"`
	Limits     limitsInFile `json:"limits"`
}

type sourceFile struct {
	URL         string          `json:"url"`
	Branch      string          `json:"branch"`
	Interval    metav1.Duration `json:"interval"`
	Timeout     metav1.Duration `json:"timeout"`
	StaleAfter  metav1.Duration `json:"staleAfter"`
	Credentials string          `json:"credentials"`
}

type trustFile struct {
	Signers string   `json:"signers"`
	Commit  string   `json:"commit"`
	Revoked []string `json:"revoked"`
}

type registryFile struct {
	Credentials string `json:"credentials"`
}

type listenFile struct {
	Metrics string `json:"metrics"`
	Health  string `json:"health"`
}

type limitsInFile struct {
	PackBytes   resource.Quantity `json:"packBytes"`
	ObjectBytes resource.Quantity `json:"objectBytes"`
	Objects     int               `json:"objects"`
	Files       int               `json:"files"`
	TreeBytes   resource.Quantity `json:"treeBytes"`
	Depth       int               `json:"depth"`
}

// DefaultDataDir is where the data folder is when nothing else is said.
const DefaultDataDir = "/var/lib/fleetling"

// maxConfigBytes bounds the file.
const maxConfigBytes = 1 << 20

// ReadConfig reads and checks a configuration file, as ParseConfig does, and that
// its remote can be asked.
func ReadConfig(path string) (Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	config, err := ParseConfig(data)
	if err == nil {
		err = config.Remote.Validate()
	}
	if err != nil {
		return Config{}, fmt.Errorf("configuration %s: %w", path, err)
	}
	return config, nil
}

// ParseConfig decodes an AgentConfiguration and checks it by itself: not the
// files that it names. What it leaves out has the value of the example in
// README.md.
func ParseConfig(data []byte) (Config, error) {
	if len(data) > maxConfigBytes {
		return Config{}, fmt.Errorf("larger than %d bytes", maxConfigBytes)
	}
	file := defaultConfigFile()
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return Config{}, err
	}
	config := file.config()
	return config, errors.Join(file.checkHead(), config.check())
}

func defaultConfigFile() configFile {
	limits := sources.DefaultLimits()
	return configFile{
		Source: sourceFile{
			Interval:   metav1.Duration{Duration: 30 * time.Second},
			Timeout:    metav1.Duration{Duration: 2 * time.Minute},
			StaleAfter: metav1.Duration{Duration: 24 * time.Hour},
		},
		Trust:    trustFile{Signers: "/etc/fleetling/signers"},
		Identity: "/etc/fleetling/identity/identity.yaml",
		DataDir:  DefaultDataDir,
		Registry: registryFile{Credentials: "/etc/fleetling/registry"},
		Listen:   listenFile{Metrics: ":8080", Health: ":8081"},
		Limits: limitsInFile{
			PackBytes:   *resource.NewQuantity(limits.PackBytes, resource.BinarySI),
			ObjectBytes: *resource.NewQuantity(limits.ObjectBytes, resource.BinarySI),
			TreeBytes:   *resource.NewQuantity(limits.TreeBytes, resource.BinarySI),
			Objects:     limits.Objects, Files: limits.Files, Depth: limits.Depth,
		},
	}
}

func (f configFile) config() Config {
	return Config{
		Remote: git.Remote{
			URL: f.Source.URL, Branch: f.Source.Branch, Credentials: f.Source.Credentials, Timeout: f.Source.Timeout.Duration,
			Limits: sources.Limits{
				PackBytes: f.Limits.PackBytes.Value(), ObjectBytes: f.Limits.ObjectBytes.Value(), Objects: f.Limits.Objects,
				Files: f.Limits.Files, TreeBytes: f.Limits.TreeBytes.Value(), Depth: f.Limits.Depth,
			},
		},
		RegistryCredentials: f.Registry.Credentials,
		Interval:            f.Source.Interval.Duration, StaleAfter: f.Source.StaleAfter.Duration,
		Trust:    Trust{Signers: f.Trust.Signers, Commit: f.Trust.Commit, Revoked: f.Trust.Revoked},
		Identity: f.Identity, DataDir: f.DataDir,
		Metrics: f.Listen.Metrics, Health: f.Listen.Health,
	}
}

func (f configFile) checkHead() error {
	if f.APIVersion != "config.fleetling.dev/v1alpha1" || f.Kind != "AgentConfiguration" {
		return fmt.Errorf("apiVersion and kind are %q and %q: write config.fleetling.dev/v1alpha1 and AgentConfiguration", f.APIVersion, f.Kind)
	}
	return nil
}

func (c Config) check() error {
	var problems []error
	need := func(ok bool, text string) {
		if !ok {
			problems = append(problems, errors.New(text))
		}
	}
	need(c.Interval >= time.Second, "source.interval: at least 1s")
	need(c.Remote.Timeout >= time.Second, "source.timeout: at least 1s")
	need(c.StaleAfter >= c.Interval, "source.staleAfter: at least source.interval")
	need(strings.HasPrefix(c.Identity, "/"), "identity: an absolute path")
	need(strings.HasPrefix(c.DataDir, "/"), "dataDir: an absolute path")
	need(strings.HasPrefix(c.Trust.Signers, "/"), "trust.signers: an absolute path")
	need(c.Trust.Commit == "" || isCommit(c.Trust.Commit), "trust.commit: a full commit id, 40 or 64 hexadecimal digits")
	for _, fingerprint := range c.Trust.Revoked {
		if _, err := trust.ParseFingerprint(fingerprint); err != nil {
			problems = append(problems, fmt.Errorf("trust.revoked: %w", err))
		}
	}
	l := c.Remote.Limits
	need(l.PackBytes > 0 && l.ObjectBytes > 0 && l.Objects > 0 && l.Files > 0 && l.TreeBytes > 0 && l.Depth > 0, "limits: each has to be more than zero")
	return errors.Join(problems...)
}

// isCommit tells whether text is a commit id of a SHA-1 or SHA-256 repository.
func isCommit(text string) bool {
	return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(text)
}
