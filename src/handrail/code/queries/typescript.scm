(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(function_signature name: (_) @name) @function
(class_declaration name: (_) @name) @class
(abstract_class_declaration name: (_) @name) @class
(arguments (class name: (_) @name) @class)
(return_statement (class name: (_) @name) @class)
(assignment_expression right: (class name: (_) @name) @class)
(interface_declaration name: (_) @name) @interface
(enum_declaration name: (_) @name) @enum
(enum_body name: (_) @name @constant)
(enum_assignment name: (_) @name) @constant
(type_alias_declaration name: (_) @name) @type
(internal_module name: (_) @name) @namespace
(module name: (_) @name) @module
(method_definition name: (_) @name) @method
(method_signature name: (_) @name) @method
(abstract_method_signature name: (_) @name) @method
(interface_body (property_signature name: (_) @name) @property)
(type_alias_declaration value: (object_type (property_signature name: (_) @name) @property))
(type_alias_declaration value: (_ (object_type (property_signature name: (_) @name) @property)))
(type_alias_declaration value: (_ (_ (object_type (property_signature name: (_) @name) @property))))
(public_field_definition name: (_) @name value: (arrow_function)) @method
(public_field_definition name: (_) @name) @field
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression) (generator_function)]) @function
(variable_declarator name: (identifier) @name value: (class)) @class
(assignment_expression left: (member_expression object: (_) @scope property: (_) @name) right: [(arrow_function) (function_expression)]) @function
(pair key: (property_identifier) @name value: [(arrow_function) (function_expression)]) @function
(pair key: (string (string_fragment) @name) value: [(arrow_function) (function_expression)]) @function
(arguments (function_expression name: (_) @name) @function)
(parenthesized_expression (function_expression name: (_) @name) @function)
(return_statement (function_expression name: (_) @name) @function)
(program (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(program (variable_declaration (variable_declarator name: (identifier) @name) @variable))
(program (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable)))
(program (lexical_declaration (variable_declarator name: (object_pattern [(shorthand_property_identifier_pattern) @name (pair_pattern value: (identifier) @name)])) @variable))
(program (lexical_declaration (variable_declarator name: (array_pattern (identifier) @name)) @variable))
(ambient_declaration (lexical_declaration (variable_declarator name: (identifier) @name) @variable))
(internal_module body: (statement_block (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable))))
(module body: (statement_block (export_statement (lexical_declaration (variable_declarator name: (identifier) @name) @variable))))
(ERROR "function" . (identifier) @name @function)
(ERROR "class" . (type_identifier) @name @class)
(comment) @comment
(decorator) @attribute

;;; analysis
(formal_parameters (_) @parameter)
(arrow_function parameter: (_) @parameter)
(variable_declarator value: (_) @value)
(extends_clause value: (_) @base)
(implements_clause (_) @base)
(extends_type_clause (_) @base)
(import_statement source: (_) @import)
(export_statement source: (_) @import)
(if_statement) @branch
(for_statement) @branch
(for_in_statement) @branch
(while_statement) @branch
(do_statement) @branch
(switch_case) @branch
(catch_clause) @branch
