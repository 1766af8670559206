package service

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// The header with the token of the part that is asked (docs/security.md), and the variable with the SHA-256 of
// every part's token: NAME=SUM,… A part knows its own token by that sum alone.
const (
	tokenHeader   = "Lab-Token"
	TokenSums     = "LAB_TOKEN_SUMS"
	tokenIsNeeded = "this needs the token of this lab's driver and agent (docs/security.md)"
)

// sumOf is the sum of a part's token in such a list; empty where the list has none.
func sumOf(sums, part string) string {
	for entry := range strings.SplitSeq(sums, ",") {
		if name, sum, _ := strings.Cut(entry, "="); name == part {
			return sum
		}
	}
	return ""
}

// hasToken is true if the request has the token with that sum. Without a sum no request has it.
func hasToken(request *http.Request, sum string) bool {
	token := sha256.Sum256([]byte(request.Header.Get(tokenHeader)))
	return subtle.ConstantTimeCompare([]byte(hex.EncodeToString(token[:])), []byte(sum)) == 1
}
