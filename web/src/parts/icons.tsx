/** Drawn icons of the rail. They are decoration: the text beside them says the same. */

const PATHS = {
  tasks: "M3 4h10M3 8h10M3 12h6",
  inbox: "M2.500 9.500h3l1 2h3l1-2h3M2.500 9.500l2-6h7l2 6v3.500h-11z",
  tools: "M9.500 6.500 13 3M9 3.500a3 3 0 0 1 3.500 3.500M10.500 8 5 13.500 2.500 11 8 5.500",
  changes: "M4 2.500v7M4 13.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM12 6.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM12 6.500c0 3-4 3-7 4",
  audit: "M8 1.500 13 4v4c0 3-2 5.500-5 6.500C5 13.500 3 11 3 8V4zM5.800 8l1.700 1.700L10.500 6.500",
  policy: "M8 2v12M4 14h8M3 4.500h10M3 4.500 1.500 9h3zM13 4.500 11.500 9h3z",
  processes: "M2.500 3h11v10h-11zM5 6.500 7 8.300 5 10M8.500 10.500h2.500",
  settings: "M2.500 5h6M11.500 5h2M2.500 11h2M7.500 11h6M10 3.500v3M6 9.500v3",
  menu: "M2.500 4h11M2.500 8h11M2.500 12h11",
  close: "M4 4l8 8M12 4l-8 8",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
