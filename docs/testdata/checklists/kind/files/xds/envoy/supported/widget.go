package supported

import "isthmus.dev/isthmus/federation"

var _ = add(row{kind: federation.Kind{Group: federation.MeshGroup, Name: "Widget"}, idle: "nothing is made of widgets"})
