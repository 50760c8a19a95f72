package sources

// Limits bound what is read from outside. Each is a hard bound with the reason
// LimitExceeded; zero is not "no limit": use DefaultLimits and change fields.
type Limits struct {
	// PackBytes is what one fetch may transfer, in bytes.
	PackBytes int64
	// ObjectBytes is what one git object, and one file, may hold, in bytes.
	ObjectBytes int64
	// Objects is how many git objects one fetch may bring.
	Objects int
	// Files is how many files a selected path may read.
	Files int
	// TreeBytes is what those files may hold together, in bytes.
	TreeBytes int64
	// Depth is how deep folders may nest.
	Depth int
}

// DefaultLimits fit a fleet repository of some thousand files.
func DefaultLimits() Limits {
	return Limits{
		PackBytes:   256 << 20,
		ObjectBytes: 8 << 20,
		Objects:     500_000,
		Files:       20_000,
		TreeBytes:   128 << 20,
		Depth:       32,
	}
}
