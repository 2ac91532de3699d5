// What Helm makes of templates: the answers in crates/template/tests/all/go.
//
//	go mod tidy && go run . VALUES.yaml HELPERS.tpl < CASES.jsonl > ANSWERED.jsonl
//
// Each line of the input is an object with the field tpl; each line of the output has the fields tpl, ok and out.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

type answer struct {
	Template string `json:"tpl"`
	Ok       bool   `json:"ok"`
	Output   string `json:"out"`
}

func render(template string, values map[string]interface{}, helpers []byte) (string, error) {
	made := &chart.Chart{
		Metadata: &chart.Metadata{Name: "demo", Version: "0.1.0", AppVersion: "1.2.3", APIVersion: "v2"},
		Values:   values,
		Templates: []*chart.File{
			{Name: "templates/t.yaml", Data: []byte(template)},
			{Name: "templates/_helpers.tpl", Data: helpers},
		},
		Files: []*chart.File{{Name: "a.txt", Data: []byte("l1\nl2\n")}},
	}
	release := chartutil.ReleaseOptions{Name: "rel", Namespace: "default", Revision: 1, IsInstall: true}
	top, err := chartutil.ToRenderValues(made, map[string]interface{}{}, release, chartutil.DefaultCapabilities.Copy())
	if err != nil {
		return "", err
	}
	rendered, err := engine.Engine{}.Render(made, top)
	return rendered["demo/templates/t.yaml"], err
}

func run(valuesFile, helpersFile string) error {
	valuesText, err := os.ReadFile(valuesFile)
	if err != nil {
		return err
	}
	helpers, err := os.ReadFile(helpersFile)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for lines.Scan() {
		var asked answer
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		// Templates change values, so each gets its own.
		values := map[string]interface{}{}
		if err := yaml.Unmarshal(valuesText, &values); err != nil {
			return err
		}
		printed, err := render(asked.Template, values, helpers)
		given := answer{Template: asked.Template, Ok: err == nil, Output: printed}
		if err != nil {
			given.Output = err.Error()
		}
		if err := output.Encode(given); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: oracle VALUES.yaml HELPERS.tpl < CASES.jsonl")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
