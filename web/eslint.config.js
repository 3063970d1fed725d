import js from "@eslint/js";
import a11y from "eslint-plugin-jsx-a11y";
import hooks from "eslint-plugin-react-hooks";
import typescript from "typescript-eslint";

const TEXT_ONLY = "Text of models, tools and files is only ever a text node.";

export default typescript.config(
  { ignores: ["node_modules", "scripts", "src/api/types.ts", "eslint.config.js"] },
  js.configs.recommended,
  ...typescript.configs.strictTypeChecked,
  hooks.configs.flat.recommended,
  a11y.flatConfigs.strict,
  {
    languageOptions: { parserOptions: { project: "./tsconfig.json", tsconfigRootDir: import.meta.dirname } },
    rules: {
      "no-restricted-syntax": [
        "error",
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: TEXT_ONLY },
        { selector: "JSXAttribute[name.name='srcDoc']", message: TEXT_ONLY },
        { selector: "MemberExpression[property.name=/^(inner|outer)HTML$/]", message: TEXT_ONLY },
        { selector: "MemberExpression[property.name='insertAdjacentHTML']", message: TEXT_ONLY },
      ],
      // The console is built without the compiler of React.
      "react-hooks/incompatible-library": "off",
      "no-eval": "error",
      "no-new-func": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": "off",
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
      "@typescript-eslint/consistent-type-imports": "error",
    },
  },
);
