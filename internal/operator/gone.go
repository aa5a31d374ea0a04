package operator

import (
	"fmt"
	"net/http"

	"github.com/chartwright/chartwright/internal/catalog"
)

// A kind that is served may lose its definition, or the version. Its watches end
// then and are begun again, ever more rarely, which the API server answers by 404
// until it has the kind again. Nobody else tells of either.

// crdGone says what is the matter with a kind that was served.
func crdGone(k catalog.Kind) string {
	return fmt.Sprintf("the API server does not serve %s any more: its CustomResourceDefinition is missing, or has no such version. "+
		"The operator looks again, every minute at the least; one that has come back with another plural or scope needs a restart of the operator", k.GVK().GroupVersion())
}

// heedAnswers has the board learn whether the API server has the kind, from all
// that is asked by a client of its custom resources alone.
func (s *service) heedAnswers(from *http.Client) *http.Client {
	client := *from
	client.Transport = roundTrip(func(request *http.Request) (*http.Response, error) {
		response, err := from.Transport.RoundTrip(request)
		if err == nil {
			s.answered(response.StatusCode)
		}
		return response, err
	})
	return &client
}

func (s *service) answered(status int) {
	gone := ""
	switch {
	case status == http.StatusNotFound:
		gone = crdGone(s.kind)
	case status >= http.StatusMultipleChoices:
		// It says nothing of the kind.
		return
	}
	news := false
	s.board.change(s.kind.GVK().GroupKind(), func(r *row) {
		news = r.gone != gone
		r.gone = gone
	})
	switch {
	case news && gone != "":
		s.logger.Info("kind not served", "why", gone)
	case news:
		s.logger.Info("kind served again")
	}
}
