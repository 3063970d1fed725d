# Listens on 127.0.0.1:8099 (TCP and UDP) while the given command runs, and leaves a mark when somebody comes.
use strict;
use IO::Socket::INET;
use IO::Select;
my %here = (LocalAddr => '127.0.0.1', LocalPort => 8099);
my $tcp = IO::Socket::INET->new(%here, Proto => 'tcp', Listen => 9, ReuseAddr => 1) or die "tcp: $!";
my $udp = IO::Socket::INET->new(%here, Proto => 'udp') or die "udp: $!";
my $ears = IO::Select->new($tcp, $udp);
$SIG{CHLD} = sub { };    # interrupts the wait below
my $child = fork // die "fork: $!";
if (!$child) { exec {$ARGV[0]} @ARGV or die "exec: $!"; }
use POSIX ':sys_wait_h';
my $running = 1;
while ($running) {
    $running = waitpid($child, WNOHANG) == 0;
    for my $ear ($ears->can_read($running ? 0.05 : 0)) {
        open my $mark, '>', '/tmp/marks/connected' or die "mark: $!";
        close $mark;
        if ($ear == $tcp) { close $tcp->accept } else { $udp->recv(my $datagram, 4096) }
    }
}
