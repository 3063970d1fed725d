(class name: (constant) @name) @class
(class name: (scope_resolution) @name) @class
(module name: (_) @name) @module
(module body: (body_statement (method name: (_) @name) @method))
(do_block body: (body_statement (method name: (_) @name) @method))
(method name: (_) @name) @function
(singleton_method name: (_) @name) @method
(assignment left: (constant) @name) @constant
(program (assignment left: (identifier) @name) @variable)
(class body: (body_statement (assignment left: (class_variable) @name) @field))
(call
  method: (identifier) @only.attr_reader.attr_writer.attr_accessor
  arguments: (argument_list (simple_symbol) @name)) @property
(ERROR "def" . (identifier) @name @function)
(ERROR "class" . (constant) @name @class)
(comment) @comment

;;; analysis
(method_parameters (_) @parameter)
(assignment right: (_) @value)
(superclass (_) @base)
(call
  method: (identifier) @only.require.require_relative
  arguments: (argument_list (string (string_content) @import)))
(if) @branch
(elsif) @branch
(unless) @branch
(if_modifier) @branch
(unless_modifier) @branch
(while) @branch
(until) @branch
(for) @branch
(when) @branch
(rescue) @branch
