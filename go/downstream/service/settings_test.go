package service

import (
	"strings"
	"testing"
)

func TestSettingsHaveDefaults(t *testing.T) {
	set, err := SettingsFrom([]string{"PATH=/bin", "HOME=/"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Settings{Delay: "200", HTTPPort: 8080, ManagementPort: 8081, ProxyPort: 8666}); set != want {
		t.Fatalf("got %+v, want %+v", set, want)
	}
}

func TestSettingsAreReadFromTheEnvironment(t *testing.T) {
	set, err := SettingsFrom([]string{"DOWNSTREAM_DELAY_MS=60000", "DOWNSTREAM_HTTP_PORT=0", "DOWNSTREAM_MANAGEMENT_PORT=9", "DOWNSTREAM_PROXY_PORT=10", "LAB_TOKEN_SUMS=netty=1,downstream=2"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Settings{Delay: "60000", HTTPPort: 0, ManagementPort: 9, ProxyPort: 10, TokenSum: "2"}); set != want {
		t.Fatalf("got %+v, want %+v", set, want)
	}
}

func TestBadSettingsAreRefusedInOneLineThatNamesThem(t *testing.T) {
	for entry, want := range map[string]string{
		"DOWNSTREAM_HTTP_PORT=65536":    `DOWNSTREAM_HTTP_PORT="65536" is not`,
		"DOWNSTREAM_MANAGEMENT_PORT=no": `DOWNSTREAM_MANAGEMENT_PORT="no" is not`,
		"DOWNSTREAM_PROXY_PORT=0":       `DOWNSTREAM_PROXY_PORT="0" is not a whole number from 1 to 65535`,
		"DOWNSTREAM_DELAY=200":          "DOWNSTREAM_DELAY is unknown; known are DOWNSTREAM_DELAY_MS",
	} {
		_, err := SettingsFrom([]string{entry})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with %s", entry, err, want)
		}
	}
}
