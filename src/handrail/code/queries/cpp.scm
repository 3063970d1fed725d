; inherits: c
(field_declaration_list (function_definition declarator: (function_declarator declarator: (identifier) @name)) @constructor)
(field_declaration_list (declaration declarator: (function_declarator declarator: (identifier) @name)) @constructor)
(field_declaration_list (declaration declarator: (function_declarator declarator: (destructor_name) @name)) @method)
(class_specifier name: (_) @name body: (_)) @class
(namespace_definition name: (_) @name) @namespace
(declaration_list (declaration declarator: (_) @name) @variable)
(linkage_specification (declaration declarator: (_) @name) @variable)
(concept_definition name: (_) @name) @type
(alias_declaration name: (_) @name) @type
(template_parameter_list) @attribute
(attribute_declaration) @attribute
(ERROR (primitive_type) . (identifier) @name @function . (ERROR (parameter_declaration)))

;;; analysis
(parameter_list (optional_parameter_declaration) @parameter)
(base_class_clause (type_identifier) @base)
(base_class_clause (qualified_identifier) @base)
(base_class_clause (template_type) @base)
(using_declaration (_) @import)
(for_range_loop) @branch
(catch_clause) @branch
