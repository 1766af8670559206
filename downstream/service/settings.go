// Package service is the delayed service that the servers under test call: one traffic port
// that answers every request after a set delay, one management port beside it.
package service

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxDelayMS is the longest delay that can be set, in milliseconds.
const MaxDelayMS = 60_000

// Settings are read once from the environment at start. Only the delay can change later,
// through PATCH /settings.
type Settings struct {
	// Delay from a request's arrival to its answer.
	Delay time.Duration
	// HTTPPort takes the traffic, ManagementPort health, metrics and settings.
	HTTPPort, ManagementPort int
	// ProxyPort is where the proxy in front listens, in the same network namespace.
	ProxyPort int
}

// SettingsFrom reads the DOWNSTREAM_* variables of an environment in the form of os.Environ.
// Unknown names and bad values are errors, one line each, fit to be shown to the user.
func SettingsFrom(environment []string) (Settings, error) {
	set := Settings{Delay: 200 * time.Millisecond, HTTPPort: 8080, ManagementPort: 8081, ProxyPort: 8666}
	for _, entry := range environment {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "DOWNSTREAM_") {
			continue
		}
		var err error
		switch name {
		case "DOWNSTREAM_DELAY_MS":
			var ms int
			ms, err = whole(name, value, 0, MaxDelayMS)
			set.Delay = time.Duration(ms) * time.Millisecond
		case "DOWNSTREAM_HTTP_PORT":
			set.HTTPPort, err = whole(name, value, 0, 65_535)
		case "DOWNSTREAM_MANAGEMENT_PORT":
			set.ManagementPort, err = whole(name, value, 0, 65_535)
		case "DOWNSTREAM_PROXY_PORT":
			set.ProxyPort, err = whole(name, value, 1, 65_535)
		default:
			err = fmt.Errorf("%s is unknown; known are DOWNSTREAM_DELAY_MS, DOWNSTREAM_HTTP_PORT, DOWNSTREAM_MANAGEMENT_PORT, DOWNSTREAM_PROXY_PORT", name)
		}
		if err != nil {
			return Settings{}, err
		}
	}
	return set, nil
}

func whole(name, value string, low, high int) (int, error) {
	number, err := strconv.Atoi(value)
	if err != nil || number < low || number > high {
		return 0, fmt.Errorf("%s=%q is not a whole number from %d to %d", name, value, low, high)
	}
	return number, nil
}
