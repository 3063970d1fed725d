require "json"

LIMIT = 3

# The market.
module Market
  # Sells things.
  class Shop < Store
    attr_reader :name

    def initialize(name, *items, day: 1)
      @name = name
    end

    def self.open(name)
      return nil if name.nil?

      new(name)
    end

    def total
      items.each { |one| one }
      case name
      when "a" then 1
      else 2
      end
    end
  end
end

def count(items)
  items.size
end
