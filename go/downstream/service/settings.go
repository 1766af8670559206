// Package service is the delayed service that the servers under test call: one traffic port
// that answers every request after a set delay, one management port beside it.
package service

import (
	"fmt"
	"strconv"
	"strings"
)

// Settings are read once from the environment at start. Only the delay can change later,
// through PATCH /settings.
type Settings struct {
	// Delay from a request's arrival to its answer, in the words that NewDelay reads.
	Delay string
	// HTTPPort takes the traffic, ManagementPort health, metrics and settings.
	HTTPPort, ManagementPort int
	// ProxyPort is where the proxy in front listens, in the same network namespace.
	ProxyPort int
	// TokenSum is that of the token which the management port asks for.
	TokenSum string
}

// SettingsFrom reads the DOWNSTREAM_* variables, and LAB_TOKEN_SUMS, of an environment in the form of os.Environ.
// Unknown names and bad values are errors, one line each, fit to be shown to the user. The delay is checked
// where it is read, by NewDelay: a health check does not need it.
func SettingsFrom(environment []string) (Settings, error) {
	set := Settings{Delay: "200", HTTPPort: 8080, ManagementPort: 8081, ProxyPort: 8666}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if name == TokenSums {
			set.TokenSum = sumOf(value, "downstream")
		}
		if !strings.HasPrefix(name, "DOWNSTREAM_") {
			continue
		}
		var err error
		switch name {
		case "DOWNSTREAM_DELAY_MS":
			set.Delay = value
		case "DOWNSTREAM_HTTP_PORT":
			set.HTTPPort, err = whole(value, 0, 65_535)
		case "DOWNSTREAM_MANAGEMENT_PORT":
			set.ManagementPort, err = whole(value, 0, 65_535)
		case "DOWNSTREAM_PROXY_PORT":
			set.ProxyPort, err = whole(value, 1, 65_535)
		default:
			return Settings{}, fmt.Errorf("%s is unknown; known are DOWNSTREAM_DELAY_MS, DOWNSTREAM_HTTP_PORT, DOWNSTREAM_MANAGEMENT_PORT, DOWNSTREAM_PROXY_PORT", name)
		}
		if err != nil {
			return Settings{}, fmt.Errorf("%s=%w", name, err)
		}
	}
	return set, nil
}

func whole(value string, low, high int) (int, error) {
	number, err := strconv.Atoi(value)
	if err != nil || number < low || number > high {
		return 0, fmt.Errorf("%q is not a whole number from %d to %d", value, low, high)
	}
	return number, nil
}
