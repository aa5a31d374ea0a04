package planner

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

type sent struct{ count int }

func (s *sent) RoundTrip(*http.Request) (*http.Response, error) {
	s.count++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestReadOnly_RefusesWrites(t *testing.T) {
	const path = "https://server/api/v1/namespaces/default/configmaps/web"
	for name, test := range map[string]struct {
		method, query string
		passes        bool
	}{
		"get":                     {method: http.MethodGet, passes: true},
		"dry run of a patch":      {method: http.MethodPatch, query: "?dryRun=All&force=true", passes: true},
		"dry run of a create":     {method: http.MethodPost, query: "?dryRun=All", passes: true},
		"patch":                   {method: http.MethodPatch, query: "?force=true"},
		"create":                  {method: http.MethodPost},
		"update":                  {method: http.MethodPut},
		"delete":                  {method: http.MethodDelete},
		"other dry run":           {method: http.MethodPatch, query: "?dryRun=Some"},
		"several dry runs":        {method: http.MethodPatch, query: "?dryRun=All&dryRun=Some"},
		"delete with query only":  {method: http.MethodDelete, query: "?dryRun=All"},
		"dry run in another name": {method: http.MethodPatch, query: "?dryrun=All"},
	} {
		t.Run(name, func(t *testing.T) {
			var s sent
			response, err := readOnly{&s}.RoundTrip(httptest.NewRequest(test.method, path+test.query, http.NoBody))
			if response != nil {
				_ = response.Body.Close()
			}
			if passes := err == nil && s.count == 1; passes != test.passes || err != nil && s.count > 0 {
				t.Errorf("passes: %t, want %t; error %v; %d requests sent", passes, test.passes, err, s.count)
			}
		})
	}
}
