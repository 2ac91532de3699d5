module jobwright.io/oracle

go 1.23

require (
	helm.sh/helm/v3 v3.17.3
	sigs.k8s.io/yaml v1.4.0
)
