package main

// settingsFile is the file of the fleet repository that the demo's commits
// change, setting the key in it, and greeting the value that it has at first.
const (
	settingsFile = "addons/platform/base/kustomization.yaml"
	setting      = "GREETING"
	greeting     = "hello"
)

// greet changes the setting in the working copy.
func (d *demo) greet(from, to string) {
	d.fleet.Replace(d, settingsFile, setting+"="+from+"\n", setting+"="+to+"\n")
}
