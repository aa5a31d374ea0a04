package values

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// digestLength is the number of hex digits of a digest: 160 bits, which fit
// into a label.
const digestLength = 40

// Digest returns a digest of the values, equal for equal values in whatever
// order their keys stand. It fits into a label. It panics on values that are
// not JSON, which FromSpec never returns.
func Digest(values map[string]any) string {
	data, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("values are not JSON: %v", err))
	}
	return DigestOf(string(data))
}

// DigestOf returns a digest of the parts, which differs where any part differs
// or stands elsewhere.
func DigestOf(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		// Writes to a hash never fail.
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:digestLength]
}
