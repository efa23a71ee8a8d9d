// The strictest sets that know types, and what of them does not fit here.
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["dist/", "node_modules/", "*.mjs"] },
  {
    files: ["src/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: "tsconfig.json", tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      // `list.forEach((each) => act(each))` reads well.
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      // As the compiler asks for: what is not declared stands in brackets.
      "@typescript-eslint/dot-notation": ["error", { allowIndexSignaturePropertyAccess: true }],
      // Parameters of methods that take none yet, in the generated protocol.ts.
      "@typescript-eslint/no-empty-object-type": ["error", { allowInterfaces: "always" }],
      // The editor asks for anything that can be disposed of, and says so by the name of a class.
      "@typescript-eslint/no-unsafe-class-instance-assignment": "off",
    },
  },
);
