(namespace_definition name: (_) @name) @namespace
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @interface
(trait_declaration name: (_) @name) @trait
(enum_declaration name: (_) @name) @enum
(enum_case name: (_) @name) @constant
(function_definition name: (_) @name) @function
(method_declaration name: (_) @name) @method
(property_declaration (property_element name: (variable_name) @name)) @property
(const_declaration (const_element . (name) @name)) @constant
(function_call_expression
  function: (name) @only.define
  arguments: (arguments . (argument (string (string_content) @name)))) @constant
(program (expression_statement (assignment_expression left: (variable_name) @name) @variable))
(comment) @comment
(attribute_list) @attribute

;;; analysis
(formal_parameters (_) @parameter)
(assignment_expression right: (_) @value)
(base_clause (_) @base)
(class_interface_clause (_) @base)
(namespace_use_clause) @import
(if_statement) @branch
(else_if_clause) @branch
(for_statement) @branch
(foreach_statement) @branch
(while_statement) @branch
(do_statement) @branch
(case_statement) @branch
(match_conditional_expression) @branch
(catch_clause) @branch
