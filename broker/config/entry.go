package config

// Type is a key's type, with the numbers of DescribeConfigs (KIP-569).
type Type int8

// Types as DescribeConfigs numbers them.
const (
	Untyped  Type = 0
	Boolean  Type = 1
	String   Type = 2
	Int      Type = 3
	Short    Type = 4
	Long     Type = 5
	Double   Type = 6
	List     Type = 7
	Class    Type = 8
	Password Type = 9
)

func (t Type) String() string {
	switch t {
	case Boolean:
		return "boolean"
	case String:
		return "string"
	case Int:
		return "int"
	case Short:
		return "short"
	case Long:
		return "long"
	case Double:
		return "double"
	case List:
		return "list"
	case Class:
		return "class"
	case Password:
		return "password"
	}
	return "unknown"
}

// Source says where a value comes from, with the numbers of DescribeConfigs v1 and later. In v0 is_default means SourceDefault.
type Source int8

// Sources as DescribeConfigs numbers them.
const (
	SourceTopic          Source = 1
	SourceDynamicBroker  Source = 2
	SourceDynamicDefault Source = 3
	SourceStatic         Source = 4
	SourceDefault        Source = 5
	SourceLogger         Source = 6
	SourceClientMetrics  Source = 7
	SourceGroup          Source = 8
)

// Entry is one key of a DescribeConfigs answer.
type Entry struct {
	Name string
	// Value is nil for a key without a value and for a sensitive one.
	Value     *string
	Source    Source
	Type      Type
	ReadOnly  bool
	Sensitive bool
	// Synonyms are all values that were given for the key or for the ones that it takes its default from, the effective one first.
	Synonyms      []Synonym
	Documentation string
}

// Synonym is one of the values that an Entry was chosen from.
type Synonym struct {
	Name   string
	Value  *string
	Source Source
}
