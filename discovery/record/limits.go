package record

// Limits of what is taken from others, and so of what is given to them.
const (
	// MaxSealed is the most bytes of a sealed record or status: 500 exports of
	// 500 bytes each fit (names of 40 characters, two ports, some labels, a part),
	// and it is a quarter of what NATS takes in one message by default.
	MaxSealed = 256 << 10
	// MaxPart is the most bytes of a part: 1,000 endpoints of 250 bytes each.
	MaxPart = 256 << 10
	// MaxExports is the most exports of one member.
	MaxExports = 500
	// MaxEndpoints is the most endpoints of one slice, as in Kubernetes, and of
	// one export.
	MaxEndpoints = 1000
	// MaxClusterEndpoints is the most endpoints of one member.
	MaxClusterEndpoints = 20_000
	// MaxPorts is the most ports of an export or a slice, as in Kubernetes' slices.
	MaxPorts = 100
	// MaxParts is the most parts of an export. Kubernetes fills slices up to 100
	// endpoints, two families make twice as many, and they are seldom full.
	MaxParts = 100
	// MaxSequence is the highest sequence number: what JSON numbers hold exactly.
	// In milliseconds it is the year 287396.
	MaxSequence = 1<<53 - 1

	// maxArmor is the most bytes of an armored ed25519 signature with its short
	// namespace: it is about 300.
	maxArmor = 1 << 10
	// maxList is the most elements of any list: that of endpoints.
	maxList = MaxEndpoints
	// maxDepth is how deep values may nest: record, exports, export, ports, port
	// are 5; unknown fields may go a little deeper.
	maxDepth = 8
	// maxPairs is the most labels, and annotations, of an export; maxPairBytes is
	// the most bytes of all of them, keys and values.
	maxPairs     = 64
	maxPairBytes = 4 << 10
	// maxLease is the longest lease, in seconds: a day.
	maxLease = 24 * 60 * 60
	// maxText is the most bytes of a text of a status, as in status fields.
	maxText = 512
	// maxFailing is the most failing add-ons of a status.
	maxFailing = 5
	// maxKeys is the most keys of a member: two, while one follows the other.
	maxKeys = 2
)
