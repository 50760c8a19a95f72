package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// encode prints a value for programs. known says which formats the command has.
func encode(out io.Writer, format string, value any, known string) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		text, err := yaml.Marshal(value)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	return fmt.Errorf("--output %q: %s", format, known)
}
