// Command downstream answers every request after a delay. It stands for the slow service
// that a server under test has to call.
//
//	downstream           serve, with the DOWNSTREAM_* variables of the environment
//	downstream -health   exit 0 when the service in this container answers, else 1
//	downstream -hold [PORT=HOST:PORT …]
//	                     keep this container's network namespace for others, and pass on what the host
//	                     asks at each PORT (service/front.go); do nothing else
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"lab/downstream/service"
)

func main() {
	health := flag.Bool("health", false, "check the running service instead of starting one")
	hold := flag.Bool("hold", false, "wait until told to stop, and pass on what is asked at each PORT=HOST:PORT")
	flag.Parse()

	stopped, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *hold {
		for _, route := range flag.Args() {
			go func() { end(1, service.ServeFront(route, os.Getenv)) }()
		}
		<-stopped.Done()
		return
	}
	settings, err := service.SettingsFrom(os.Environ())
	if err != nil {
		end(2, err)
	}
	if *health {
		if err := service.Check(settings.ManagementPort, 3*time.Second); err != nil {
			end(1, err)
		}
		return
	}
	delay, err := service.NewDelay(settings.Delay, os.DirFS(service.RecordedIn))
	if err != nil {
		end(2, fmt.Errorf("DOWNSTREAM_DELAY_MS=%w", err))
	}
	if err := serve(stopped, settings, delay); err != nil {
		end(1, err)
	}
}

func serve(stopped context.Context, settings service.Settings, delay *service.Delay) error {
	running, err := service.Start(settings, delay, service.NewClock())
	if err != nil {
		return err
	}
	fmt.Printf("downstream: traffic on %d, management on %d, delay in ms: %s\n",
		running.HTTPPort, running.ManagementPort, delay.Words())
	select {
	case err := <-running.Failed():
		return fmt.Errorf("a port ended by itself: %w", err)
	case <-stopped.Done():
	}
	// Waiting requests are not worth a slow stop of the lab.
	deadline, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_ = running.Stop(deadline)
	return nil
}

func end(status int, err error) {
	fmt.Fprintf(os.Stderr, "downstream: %v\n", err)
	os.Exit(status)
}
