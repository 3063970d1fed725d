/** Text of models, tools and files. It is inert: text nodes only. */

import { memo, type ReactNode } from "react";
import Markdown, { type Components, defaultUrlTransform } from "react-markdown";
import remarkGfm from "remark-gfm";
import { splitVisible } from "../text/visible";
import { Code } from "./code";

interface VisibleProps {
  text: string;
  /** Whether blanks at the end of a line are written out too. */
  ends?: boolean;
  /** The element around it. */
  as?: "b" | "code" | "p" | "span" | "td";
  className?: string;
}

/** A command, a path or a host with every hidden character written out. */
export function Visible({ text, ends = true, as: Element, className }: VisibleProps) {
  const pieces = splitVisible(text, ends).map((piece, place) =>
    piece.hidden ? (
      <mark key={place} className="hidden-character" title="A character that cannot be seen">
        {piece.text}
      </mark>
    ) : (
      piece.text
    ),
  );
  return Element === undefined ? pieces : <Element className={className}>{pieces}</Element>;
}

/** Warnings, each in a line. `about` stands before each. */
export function Warnings({ texts, about = "", className = "warn" }: { texts: readonly string[]; about?: string; className?: string }) {
  return texts.map((text) => (
    <p key={text} className={className}>
      ! {about}
      <Visible text={text} />
    </p>
  ));
}

/** The address of a link if it may be followed: http and https only. */
export function checkLink(address: string | undefined): string | null {
  if (address === undefined) return null;
  try {
    const url = new URL(address);
    return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
  } catch {
    return null;
  }
}

/** A link out of the console. Its address is shown, because its text may say another. */
export function OutsideLink({ address, children }: { address: string | undefined; children: ReactNode }) {
  const safe = checkLink(address);
  const shown = address ?? "";
  if (safe === null) {
    return (
      <span className="dead-link">
        {children} {shown !== "" && <Visible text={`(${shown})`} />}
      </span>
    );
  }
  const same = children === shown || children === safe;
  return (
    <a href={safe} target="_blank" rel="noopener noreferrer">
      {children}
      {!same && (
        <span className="link-address">
          {" "}
          (<Visible text={safe} />)
        </span>
      )}
    </a>
  );
}

const COMPONENTS: Components = {
  a: ({ href, children }) => <OutsideLink address={href}>{children}</OutsideLink>,
  img: ({ src, alt }) => <OutsideLink address={typeof src === "string" ? src : undefined}>{`image: ${alt ?? ""}`}</OutsideLink>,
  input: ({ checked }) => <span>{checked === true ? "☑ " : "☐ "}</span>,
  h1: ({ children }) => <h3>{children}</h3>,
  h2: ({ children }) => <h3>{children}</h3>,
  h3: ({ children }) => <h4>{children}</h4>,
  table: ({ children }) => (
    <div className="scroll-x">
      <table>{children}</table>
    </div>
  ),
  pre: ({ children }) => <>{children}</>,
  code: ({ className, children }) => {
    const text = typeof children === "string" ? children : "";
    const language = /language-([\w+#-]+)/.exec(className ?? "")?.[1];
    if (language === undefined && !text.includes("\n")) return <code>{children}</code>;
    return <Code text={text.replace(/\n$/, "")} language={language ?? null} />;
  },
};
const PLUGINS = [remarkGfm];
const MAX_MARKDOWN = 200_000;

/** Markdown of a model: HTML in it is text, addresses of links are shown, images are not loaded. */
export const MarkdownText = memo(function MarkdownText({ text }: { text: string }) {
  if (text.length > MAX_MARKDOWN) return <pre className="plain-text">{text}</pre>;
  return (
    <div className="markdown">
      <Markdown components={COMPONENTS} remarkPlugins={PLUGINS} urlTransform={keepAddress}>
        {text}
      </Markdown>
    </div>
  );
});

/** `OutsideLink` decides, so that refused addresses can be shown. Nothing else has an address. */
function keepAddress(address: string, key: string): string {
  return key === "href" || key === "src" ? address : defaultUrlTransform(address);
}
