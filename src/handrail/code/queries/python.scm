(function_definition name: (identifier) @name) @function
(class_definition name: (identifier) @name) @class
(type_alias_statement left: (type (identifier) @name)) @type
(type_alias_statement left: (type (generic_type (identifier) @name))) @type
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @field)))
(class_definition body: (block (expression_statement (assignment right: (assignment left: (identifier) @name)) @field)))
(module (expression_statement (assignment left: (identifier) @name) @variable))
(module (expression_statement (assignment left: (pattern_list [
  (identifier) @name
  (list_splat_pattern (identifier) @name)
  (tuple_pattern [(identifier) @name (list_splat_pattern (identifier) @name)])])) @variable))
(module (expression_statement (assignment left: (tuple_pattern (identifier) @name)) @variable))
(module (if_statement (block (expression_statement (assignment left: (identifier) @name) @variable))))
(module (try_statement (block (expression_statement (assignment left: (identifier) @name) @variable))))
(module (if_statement (else_clause (block (expression_statement (assignment left: (identifier) @name) @variable)))))
(module (try_statement (except_clause (block (expression_statement (assignment left: (identifier) @name) @variable)))))
(module (expression_statement (assignment right: (assignment left: (identifier) @name)) @variable))
(ERROR "def" . (identifier) @name @function)
(ERROR "class" . (identifier) @name @class)

(function_definition body: (block . (expression_statement (string (string_content) @doc))))
(class_definition body: (block . (expression_statement (string (string_content) @doc))))

(comment) @comment
(decorator) @attribute

;;; analysis
(parameters (_) @parameter)
(class_definition superclasses: (argument_list (_) @base))
(assignment right: (_) @value)

(import_statement name: (_) @import)
(import_from_statement module_name: (_) @module name: (_) @member)
(import_from_statement module_name: (_) @module (wildcard_import) @member)
(future_import_statement name: (_) @import)

(if_statement) @branch
(elif_clause) @branch
(for_statement) @branch
(for_statement alternative: (else_clause) @branch)
(while_statement) @branch
(while_statement alternative: (else_clause) @branch)
(except_clause) @branch
(try_statement (else_clause) @branch)
(case_clause (case_pattern (_))) @branch
