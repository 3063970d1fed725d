import React from "react";

type Props = { title: string };

export function Page({ title }: Props) {
  const onClick = () => alert(title);
  return <button onClick={onClick}>{title ? "a" : "b"}</button>;
}

export default class Panel extends React.Component<Props> {
  render() {
    return <Page title="x" />;
  }
}
