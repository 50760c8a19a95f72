package cluster

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// maxEvent bounds one line of the audit log.
const maxEvent = 4 << 20

// Event is one request that an API server has answered: the part of
// audit.k8s.io/v1 Event, level Metadata, that suites look at.
type Event struct {
	// Verb is Kubernetes', lower case: get, list, watch, patch, ...
	Verb string `json:"verb"`
	// RequestURI is path and query.
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	// ObjectRef is nil for requests that are about no object, such as /version.
	ObjectRef      *ObjectRef `json:"objectRef"`
	ResponseStatus struct {
		// Code is the HTTP status.
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceived time.Time `json:"requestReceivedTimestamp"`
	Stage           string    `json:"stage"`
}

// ObjectRef is what a request was about; its fields are empty where it says
// nothing: a list has no Name.
type ObjectRef struct {
	APIGroup    string `json:"apiGroup"`
	APIVersion  string `json:"apiVersion"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// Audit gives the requests of a user, all users where it is empty, in the order in which
// they were finished; a watch is finished when it ends. It makes a request of
// its own and reads until that stands in the log: what was answered before the call is
// in the result.
func (c *Cluster) Audit(ctx context.Context, user string) ([]Event, error) {
	mark := "/version?mark=" + rand.Text()
	if err := c.client.Discovery().RESTClient().Get().RequestURI(mark).Do(ctx).Error(); err != nil {
		return nil, fmt.Errorf("cluster %s: audit log: %w", c.name, err)
	}
	var events []Event
	err := await(ctx, c.apiServer, func(context.Context) error {
		var err error
		events, err = readEvents(c.path(auditFile))
		if err != nil {
			return err
		}
		at := slices.IndexFunc(events, func(e Event) bool { return e.RequestURI == mark })
		if at < 0 {
			return fmt.Errorf("no %s yet", mark)
		}
		events = events[:at]
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cluster %s: audit log: %w", c.name, err)
	}
	return slices.DeleteFunc(events, func(e Event) bool { return user != "" && e.User.Username != user }), nil
}

// readEvents reads an audit log. A last line without its end is still being
// written and left out.
func readEvents(path string) ([]Event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var events []Event
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxEvent)
	lines.Split(wholeLines)
	for lines.Scan() {
		var event Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(events)+1, err)
		}
		events = append(events, event)
	}
	return events, lines.Err()
}

func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	advance, token, err := bufio.ScanLines(data, false)
	if advance == 0 && atEOF {
		return len(data), nil, err
	}
	return advance, token, err
}
