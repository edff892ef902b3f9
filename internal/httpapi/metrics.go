package httpapi

import "net/http"

// metricsPath is no path of a resource: it is about the process, and about what every process knows of the fleet.
const metricsPath = "/metrics"

func metricsRoute() route {
	return route{http.MethodGet, metricsPath, accessRead, "getMetrics", metrics}
}

// metrics answers in the text format of Prometheus, with and without the database.
func metrics(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	c.o.Metrics.ServeHTTP(c.w, c.r)
	return nil
}
