package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Service is the two ports, bound and serving.
type Service struct {
	// HTTPPort and ManagementPort are the ports in use, also when 0 was asked for.
	HTTPPort, ManagementPort int
	failed                   chan error
	traffic                  *Traffic
	stop                     func(context.Context) error
}

// Start binds both ports and serves them in the background.
func Start(set Settings, delay *Delay, clock Clock) (*Service, error) {
	traffic, err := net.Listen("tcp4", fmt.Sprintf(":%d", set.HTTPPort))
	if err != nil {
		return nil, err
	}
	management, err := net.Listen("tcp4", fmt.Sprintf(":%d", set.ManagementPort))
	if err != nil {
		return nil, errors.Join(err, traffic.Close())
	}
	s := &Service{HTTPPort: port(traffic), ManagementPort: port(management), failed: make(chan error, 1)}

	queues := NewAcceptQueues(ListenerQueue, map[int]string{set.ProxyPort: "toxiproxy", s.HTTPPort: "downstream"})
	served, err := NewTraffic(traffic.(*net.TCPListener), delay, clock)
	if err != nil {
		return nil, errors.Join(err, management.Close())
	}
	metrics := NewMetrics(delay, served, queues)
	managementServer := &http.Server{
		Handler:           NewManagement(delay, metrics, fmt.Sprintf("http://127.0.0.1:%d", s.HTTPPort), set.TokenSum),
		ReadHeaderTimeout: 5 * time.Second,
	}
	looking, stopLooking := context.WithCancel(context.Background())
	go queues.Run(looking)
	served.Start()
	s.traffic = served
	go func() { s.failed <- managementServer.Serve(management) }()
	s.stop = func(deadline context.Context) error {
		stopLooking()
		err := errors.Join(managementServer.Shutdown(deadline), served.Stop(deadline))
		// A server told to stop before it began to serve does not know its listener yet.
		_ = management.Close()
		return err
	}
	return s, nil
}

// Failed yields what the management port ended with, should it end by itself.
func (s *Service) Failed() <-chan error { return s.failed }

// Stop closes both ports and lets requests end until the deadline.
func (s *Service) Stop(deadline context.Context) error { return s.stop(deadline) }

func port(listener net.Listener) int { return listener.Addr().(*net.TCPAddr).Port }
